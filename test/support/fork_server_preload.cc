// Goes before a program, by LD_PRELOAD, and makes a fork server of it (fork_server.h): main() is
// not called by the process that loads the program but by forks of it. What is in here the program
// finds before its own, so no templates of the standard library are.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

namespace {

using Main = int (*)(int, char**, char**);

// A packet's size: arguments and an environment.
constexpr std::size_t kMostBytes = 1 << 18;

Main program_main = nullptr;

void Require(bool ok, const char* what) {
  if (ok) return;
  std::perror(what);
  std::_Exit(127);
}

// Strings that are never freed, and a null pointer behind them.
char** Strings(const char*& at, int& count) {
  std::memcpy(&count, at, sizeof count);
  at += sizeof count;
  const auto strings =
      static_cast<char**>(std::calloc(static_cast<std::size_t>(count) + 1, sizeof(char*)));
  for (int i = 0; i < count; ++i) {
    strings[i] = strdup(at);
    at += std::strlen(at) + 1;
  }
  return strings;
}

// What has been asked for: the working directory, stdout, stderr, and the message's bytes.
struct Order {
  int fds[3];
  char bytes[kMostBytes];
};

bool Receive(int fd, Order& order) {
  iovec data{order.bytes, sizeof order.bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof order.fds)];
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  if (recvmsg(fd, &header, MSG_CMSG_CLOEXEC) <= 0) return false;
  const cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  Require(rights != nullptr && rights->cmsg_len == CMSG_LEN(sizeof order.fds), "an order's files");
  std::memcpy(order.fds, CMSG_DATA(rights), sizeof order.fds);
  return true;
}

[[noreturn]] void RunMain(const Order& order) {
  setpgid(0, 0);
  Require(fchdir(order.fds[0]) == 0, "fchdir");
  Require(dup2(order.fds[1], STDOUT_FILENO) >= 0 && dup2(order.fds[2], STDERR_FILENO) >= 0, "dup2");
  for (const int fd : order.fds) close(fd);
  const char* at = order.bytes;
  int argc = 0;
  int variables = 0;
  char** const argv = Strings(at, argc);
  environ = Strings(at, variables);
  const int code = program_main(argc, argv, environ);
  std::cout.flush();
  std::fflush(nullptr);
  _exit(code);
}

// Forks twice: as the one in between ends at once, the test, a subreaper, becomes the parent.
pid_t Fork() {
  int ends[2];
  Require(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
  const pid_t between = fork();
  Require(between >= 0, "fork");
  if (between == 0) {
    const pid_t pid = fork();
    if (pid == 0) {
      close(ends[0]);
      close(ends[1]);
      return 0;
    }
    // Here as well: as soon as the test knows the pid it may signal the group.
    if (pid > 0) setpgid(pid, pid);
    const bool told = write(ends[1], &pid, sizeof pid) == sizeof pid;
    _exit(pid > 0 && told ? 0 : 1);
  }
  close(ends[1]);
  pid_t pid = -1;
  Require(read(ends[0], &pid, sizeof pid) == sizeof pid && pid > 0, "fork");
  close(ends[0]);
  Require(waitpid(between, nullptr, 0) == between, "waitpid");
  return pid;
}

int Serve(int, char**, char**) {
  const int fd = std::atoi(std::getenv("FORK_SERVER_FD"));
  Require(fcntl(fd, F_SETFD, FD_CLOEXEC) == 0, "FORK_SERVER_FD");
  static Order order;
  while (Receive(fd, order)) {
    const pid_t pid = Fork();
    if (pid == 0) {
      close(fd);
      RunMain(order);
    }
    for (const int one : order.fds) close(one);
    Require(send(fd, &pid, sizeof pid, MSG_NOSIGNAL) == sizeof pid, "send");
  }
  // Nothing that the program would do at its end.
  _exit(0);
}

}  // namespace

// glibc's, which a program's first instructions call with its main().
extern "C" int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                                 void (*rtld_fini)(), void* stack_end) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  const auto start = reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"));
  Require(start != nullptr, "__libc_start_main");
  program_main = main;
  return start(Serve, argc, argv, init, fini, rtld_fini, stack_end);
}
