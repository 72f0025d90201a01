#include "trainer/io/same_file.h"

#include <sys/stat.h>
#include <unistd.h>

namespace muster::trainer {
namespace {

bool IsSame(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

}  // namespace

bool IsSameFile(const std::string& one, const std::string& other) {
  struct stat first = {};
  struct stat second = {};
  return stat(one.c_str(), &first) == 0 && stat(other.c_str(), &second) == 0 &&
         (S_ISREG(first.st_mode) || S_ISDIR(first.st_mode)) && IsSame(first, second);
}

bool IsStdout(const std::string& path) {
  struct stat file = {};
  struct stat standard = {};
  return stat(path.c_str(), &file) == 0 && fstat(STDOUT_FILENO, &standard) == 0 &&
         IsSame(file, standard);
}

}  // namespace muster::trainer
