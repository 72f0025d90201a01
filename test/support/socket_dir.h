// A directory of a test's own for Unix sockets, whose names must be short: those below TEST_TMPDIR
// are not.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace muster::test {

// Mode 0700, and gone with this object.
class SocketDir {
 public:
  SocketDir() {
    // Ends the test where there is no place to run it.
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~SocketDir() { std::filesystem::remove_all(path_); }
  SocketDir(const SocketDir&) = delete;
  SocketDir& operator=(const SocketDir&) = delete;

  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_ = "/tmp/test_XXXXXX";
};

}  // namespace muster::test
