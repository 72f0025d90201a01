#include "test/trainer/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "test/support/fork_server.h"
#include "test/support/require.h"

namespace muster::trainer {
namespace {

using test::Require;

using Clock = std::chrono::steady_clock;

// Waits until `fd` is readable or at its end; false when `deadline` passes first.
bool WaitReadable(int fd, Clock::time_point deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd poll_fd{fd, POLLIN, 0};
    if (poll(&poll_fd, 1, static_cast<int>(left)) > 0) return true;
  }
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

pid_t Spawn(std::vector<std::string> argv, std::vector<std::string>& environment, int out,
            int err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t pid = -1;
  errno = posix_spawn(&pid, argv[0].c_str(), &actions, nullptr, Pointers(argv).data(),
                      Pointers(environment).data());
  Require(errno == 0, argv[0].c_str());
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

}  // namespace

Program::Program(const std::vector<std::string>& arguments, const Variables& variables) {
  std::array<int, 2> output{};
  Require(pipe2(output.data(), O_CLOEXEC) == 0, "pipe2");
  errors_fd_ = memfd_create("stderr", MFD_CLOEXEC);
  Require(errors_fd_ >= 0, "memfd_create");

  std::vector<std::string> envp = {"PATH=/usr/bin:/bin"};
  for (const auto& [name, value] : variables) envp.push_back(name + "=" + value);
  if (test::ForkServer* const server = test::ForkServer::For(arguments, envp)) {
    pid_ = server->Start(arguments, envp, output[1], errors_fd_);
  } else {
    pid_ = Spawn(arguments, envp, output[1], errors_fd_);
  }
  close(output[1]);
  output_fd_ = output[0];
  exit_fd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  Require(exit_fd_ >= 0, "pidfd_open");
}

Program::Program(Program&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      exit_fd_(std::exchange(other.exit_fd_, -1)),
      output_fd_(std::exchange(other.output_fd_, -1)),
      errors_fd_(std::exchange(other.errors_fd_, -1)),
      exit_code_(other.exit_code_),
      output_(std::move(other.output_)) {}

Program::~Program() {
  if (pid_ < 0) return;
  if (exit_code_ < 0) {
    Kill();
    waitpid(pid_, nullptr, 0);
  }
  close(exit_fd_);
  close(output_fd_);
  close(errors_fd_);
}

bool Program::WaitForOutput(const std::string& text, std::chrono::seconds deadline) {
  const Clock::time_point end = Clock::now() + deadline;
  while (output_.find(text) == std::string::npos) {
    if (!WaitReadable(output_fd_, end)) return false;
    std::array<char, 4096> buffer;
    const ssize_t got = read(output_fd_, buffer.data(), buffer.size());
    if (got <= 0) return false;
    output_.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return true;
}

int Program::Wait(std::chrono::seconds deadline) {
  if (exit_code_ >= 0) return exit_code_;
  const Clock::time_point end = Clock::now() + deadline;
  const std::string never = std::string("\0", 1);  // reads to the end of the output
  WaitForOutput(never, deadline);
  if (!WaitReadable(exit_fd_, end)) Kill();
  int status = 0;
  Require(waitpid(pid_, &status, 0) == pid_, "waitpid");
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_;
}

void Program::Signal(int signal) {
  syscall(SYS_pidfd_send_signal, exit_fd_, signal, nullptr, 0);
}

void Program::Kill() {
  Signal(SIGKILL);
}

std::string Program::errors() const {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got =
        pread(errors_fd_, buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

HeldPort::HeldPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  Require(bind(fd_, generic, length) == 0, "bind");
  Require(listen(fd_, 1) == 0, "listen");
  Require(getsockname(fd_, generic, &length) == 0, "getsockname");
  number_ = ntohs(address.sin_port);
}

HeldPort::~HeldPort() {
  close(fd_);
}

bool HeldPort::WaitForCaller(std::chrono::seconds deadline) const {
  return WaitReadable(fd_, Clock::now() + deadline);
}

int FreePort() {
  return HeldPort().number();
}

Program::Variables RankVariables(int rank, int world_size, int port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(world_size)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(world_size)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)},
          {"OMP_NUM_THREADS", "1"}};
}

std::vector<Program> RunRanks(const std::vector<std::string>& arguments, int world_size,
                              std::chrono::seconds deadline) {
  const int port = FreePort();
  std::vector<Program> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.emplace_back(arguments, RankVariables(rank, world_size, port));
  }
  for (int rank = 0; rank < world_size; ++rank) {
    Program& program = ranks[static_cast<std::size_t>(rank)];
    EXPECT_EQ(program.Wait(deadline), 0)
        << "rank " << rank << " of " << world_size << ": " << program.errors();
  }
  return ranks;
}

// Bazel runs a test in its tree of run-time files.
std::string MusterTrain() {
  return "trainer/muster-train";
}

bool PythonHasTorch() {
  if (access("/usr/bin/python3", X_OK) != 0) return false;
  // Looking for it is many times faster than importing it.
  static const bool found =
      Program({"/usr/bin/python3", "-c",
               "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"},
              {})
          .Wait(std::chrono::seconds(60)) == 0;
  return found;
}

bool HasFashionMnist() {
  return std::filesystem::exists(std::string(kFashionMnist) + "/train-images-idx3-ubyte.gz");
}

}  // namespace muster::trainer
