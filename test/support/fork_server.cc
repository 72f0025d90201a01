#include "test/support/fork_server.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "test/support/require.h"

namespace muster::test {
namespace {

void Append(const std::vector<std::string>& strings, std::string& message) {
  const auto count = static_cast<int>(strings.size());
  message.append(reinterpret_cast<const char*>(&count), sizeof count);
  for (const std::string& text : strings) message.append(text.c_str(), text.size() + 1);
}

}  // namespace

ForkServer* ForkServer::For(const std::vector<std::string>& argv,
                            const std::vector<std::string>& environment) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return nullptr;  // these have to be loaded before everything else
#endif
  if (!argv[0].starts_with("trainer/") && !argv[0].starts_with("test/trainer/")) return nullptr;
  bool one_thread = false;
  for (const std::string& variable : environment) {
    one_thread |= variable == "OMP_NUM_THREADS=1";
    if (variable.starts_with("LD_") || variable.starts_with("OPENBLAS_")) return nullptr;
  }
  if (!one_thread) return nullptr;
  static std::map<std::string, std::unique_ptr<ForkServer>> servers;
  std::unique_ptr<ForkServer>& server = servers[argv[0]];
  if (!server) server.reset(new ForkServer(argv[0]));
  return server.get();
}

ForkServer::ForkServer(const std::string& program) {
  Require(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "prctl");
  std::array<int, 2> pair{};
  Require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) == 0, "socketpair");
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  // To the same number: that alone takes off its close-on-exec flag.
  posix_spawn_file_actions_adddup2(&files, pair[1], pair[1]);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t signals;
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);

  std::vector<std::string> environment = {"OMP_NUM_THREADS=1",
                                          "LD_PRELOAD=test/support/fork_server_preload.so",
                                          "FORK_SERVER_FD=" + std::to_string(pair[1])};
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  std::vector<char*> envp;
  for (std::string& text : environment) envp.push_back(text.data());
  envp.push_back(nullptr);
  std::string name = program;
  std::array<char*, 2> argv{name.data(), nullptr};
  errno = posix_spawn(&pid_, program.c_str(), &files, &attributes, argv.data(), envp.data());
  Require(errno == 0, program.c_str());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  close(pair[1]);
  fd_ = pair[0];
}

ForkServer::~ForkServer() {
  // It ends when the socket does.
  close(fd_);
  waitpid(pid_, nullptr, 0);
}

pid_t ForkServer::Start(const std::vector<std::string>& argv,
                        const std::vector<std::string>& environment, int out, int err) {
  const int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  Require(here >= 0, "open");
  std::string message;
  Append(argv, message);
  Append(environment, message);
  std::array<int, 3> fds{here, out, err};
  iovec data{message.data(), message.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fds)> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof fds);
  std::memcpy(CMSG_DATA(rights), fds.data(), sizeof fds);
  Require(sendmsg(fd_, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(message.size()), "sendmsg");
  close(here);
  pid_t pid = -1;
  Require(recv(fd_, &pid, sizeof pid, 0) == sizeof pid && pid > 0, "the fork server is gone");
  return pid;
}

}  // namespace muster::test
