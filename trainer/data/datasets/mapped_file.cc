#include "trainer/data/datasets/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/failure.h"

#include "trainer/data/datasets/unreadable.h"

namespace muster::trainer {
absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  // Not blocking: a named pipe nobody writes to would hold the open up, only to be refused below.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Unreadable(path, base::SystemCause());
  struct stat info {};
  std::string why;
  void* bytes = MAP_FAILED;
  if (fstat(fd, &info) != 0) {
    why = base::SystemCause();
  } else if (!S_ISREG(info.st_mode)) {
    why = S_ISDIR(info.st_mode) ? "is a directory" : "not a regular file";
  } else if (info.st_size == 0) {
    why = "is empty";
  } else {
    bytes = mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) why = base::SystemCause();
  }
  close(fd);  // the mapping stays
  if (!why.empty()) return Unreadable(path, why);
  return std::shared_ptr<const MappedFile>(
      new MappedFile(static_cast<const std::uint8_t*>(bytes), info.st_size));
}

MappedFile::~MappedFile() {
  munmap(const_cast<std::uint8_t*>(bytes_), static_cast<std::size_t>(size_));
}

}  // namespace muster::trainer
