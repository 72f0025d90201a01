// A temporary directory for a test, and helpers about files and processes that tests in several
// folders share.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace muster::test {

class TempDir {
 public:
  TempDir() {
    const char* base = std::getenv("TEST_TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/test_XXXXXX";
    // Abort the test if there is nowhere to run it.
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }

  // Writes a file with that name and returns its path.
  std::string Write(const std::string& name, std::string_view text, mode_t mode = 0644) const {
    const std::string path = Path(name);
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }

 private:
  std::string path_;
};

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  // Not with buffer iterators, which throw when a process ends while its /proc file is being read.
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Whether the process is running. A zombie, which has died but was not waited for yet, is not.
inline bool IsAlive(pid_t pid) {
  const std::string stat = ReadAll("/proc/" + std::to_string(pid) + "/stat");
  // "123 (name) S ...", where the name may contain anything.
  const std::size_t end_of_name = stat.rfind(')');
  return end_of_name != std::string::npos && stat[end_of_name + 2] != 'Z' &&
         stat[end_of_name + 2] != 'X';
}

}  // namespace muster::test
