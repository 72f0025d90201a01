// Starts a program many times and loads it once.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace muster::test {

// A process of a program that has loaded its libraries and waits before main(); each start is a
// fork of it. What runs is the program as it ships: fork_server_preload.cc, which the loader puts
// in front of it, only decides when main() is called, and with which arguments.
//
// For programs that link LibTorch: loading it takes most of a second of processor time, a fork a
// twentieth of that. What is started differs from a start by exec in what was before main() and is
// behind it: initializers have seen the server's environment, /proc/PID/cmdline is the server's,
// and after main() nothing is destroyed, as each page that LibTorch's destructors write would have
// to be copied first.
//
// The calling process becomes a subreaper, so that it is the parent of what is started. One thread.
class ForkServer {
 public:
  // The server of the program argv[0] when that is one of the tree's, by its path from there, with
  // OMP_NUM_THREADS=1 in `environment` (NAME=VALUE), and no variable there that the loader or
  // OpenBLAS reads before main(); else null. The server lives until the test ends. Aborts the test
  // if it cannot be started.
  static ForkServer* For(const std::vector<std::string>& argv,
                         const std::vector<std::string>& environment);
  ~ForkServer();
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

  // Runs main() with `argv` and the environment `environment` (NAME=VALUE, all of it) in a child of
  // this process and the leader of a process group of its own, in this process's working directory,
  // with no signal ignored or blocked. Its stdin is /dev/null. Returns its pid, to be waited for.
  pid_t Start(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
              int out, int err);

 private:
  explicit ForkServer(const std::string& program);

  int fd_ = -1;  // of a pair of sequenced-packet sockets
  pid_t pid_ = -1;
};

}  // namespace muster::test
