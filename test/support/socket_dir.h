// A temporary directory for a test's Unix sockets. Their paths must be short, and those below
// TEST_TMPDIR are not.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace muster::test {

// Has mode 0700. The destructor removes it.
class SocketDir {
 public:
  SocketDir() {
    // Abort the test if there is nowhere to run it.
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
