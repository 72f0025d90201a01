#include "test/support/command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sstream>
#include <utility>

#include "test/support/fork_server.h"
#include "test/support/require.h"

namespace muster::test {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// This process's environment with `changes` over it.
std::vector<std::string> Merge(const std::vector<std::string>& changes) {
  std::vector<std::string> merged = changes;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    if (std::none_of(changes.begin(), changes.end(),
                     [&](const std::string& change) { return change.starts_with(name); })) {
      merged.push_back(text);
    }
  }
  return merged;
}

// As posix_spawnp; returns its error.
int Spawn(std::vector<std::string>& argv, std::vector<std::string>& environment, int out, int err,
          pid_t& pid) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  // Whoever started the test may ignore some.
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigdefault(&attributes, &all);
  const int error = posix_spawnp(&pid, argv.at(0).c_str(), &files, &attributes,
                                 Pointers(argv).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

Command::Command(std::vector<std::string> argv, const std::vector<std::string>& environment) {
  int out[2];
  int err[2];
  Require(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0, "pipe2");
  std::vector<std::string> merged = Merge(environment);
  int error = 0;
  if (ForkServer* const server = ForkServer::For(argv, environment)) {
    pid_ = server->Start(argv, merged, out[1], err[1]);
  } else {
    error = Spawn(argv, merged, out[1], err[1], pid_);
  }
  close(out[1]);
  close(err[1]);
  out_.fd = out[0];
  err_.fd = err[0];
  for (const int fd : {out_.fd, err_.fd}) fcntl(fd, F_SETFL, O_NONBLOCK);
  if (error != 0) {
    pid_ = -1;
    err_.text = argv[0] + ": " + std::strerror(error);
    exit_ = 127;
    return;
  }
  pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  Require(pidfd_ >= 0, "pidfd_open");
}

Command::Command(Command&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::exchange(other.pidfd_, -1)),
      out_(std::exchange(other.out_, {})),
      err_(std::exchange(other.err_, {})),
      exit_(other.exit_) {}

Command::~Command() {
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    if (!exit_) waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {pidfd_, out_.fd, err_.fd}) {
    if (fd >= 0) close(fd);
  }
}

void Command::Signal(int signal) const {
  if (!exit_) kill(pid_, signal);
}

bool Command::WaitFor(const std::string& text, const Stream& stream) {
  const Time end = std::chrono::steady_clock::now() + kDeadline;
  // What has been searched is not searched again: it may be many megabytes.
  std::size_t from = 0;
  while (stream.text.find(text, from) == std::string::npos) {
    if (exit_ || std::chrono::steady_clock::now() >= end) return false;
    from = stream.text.size() - std::min(stream.text.size(), text.size());
    Poll(end);
  }
  return true;
}

std::optional<int> Command::Wait(std::chrono::seconds deadline) {
  const Time end = std::chrono::steady_clock::now() + deadline;
  while (!exit_ && std::chrono::steady_clock::now() < end) Poll(end);
  return exit_;
}

void Command::Poll(Time end) {
  // A descriptor of -1 is one that poll() does not look at.
  std::array<pollfd, 3> fds{pollfd{pidfd_, POLLIN, 0}, pollfd{out_.fd, POLLIN, 0},
                            pollfd{err_.fd, POLLIN, 0}};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      std::max(end - std::chrono::steady_clock::now(), Time::duration::zero()));
  poll(fds.data(), fds.size(), static_cast<int>(left.count()));
  // First the end, then what was written before it.
  int status = 0;
  const bool ended = waitpid(pid_, &status, WNOHANG) == pid_;
  TakeIn();
  if (ended) exit_ = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void Command::TakeIn() {
  Drain(out_);
  Drain(err_);
}

void Command::Drain(Stream& stream) {
  std::array<char, 4096> buffer;
  while (stream.fd >= 0) {
    const ssize_t count = read(stream.fd, buffer.data(), buffer.size());
    if (count > 0) {
      stream.text.append(buffer.data(), static_cast<std::size_t>(count));
    } else if (count == 0) {
      close(std::exchange(stream.fd, -1));
    } else if (errno != EINTR) {
      return;  // nothing there for now
    }
  }
}

std::vector<std::string> WordsOf(const std::string& line) {
  std::istringstream words(line);
  return {std::istream_iterator<std::string>(words), {}};
}

std::vector<std::string> Joined(std::vector<std::string> words,
                                const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace muster::test
