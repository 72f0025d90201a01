#include "test/trainer/forked_members.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "test/support/require.h"

namespace muster::trainer {
namespace {

using test::Require;

constexpr std::chrono::seconds kMembersDeadline(30);

}  // namespace

ForkedMembers::ForkedMembers(int count, const Body& body) {
  for (int member = 0; member < count; ++member) {
    std::array<int, 2> pipe_fds{};
    Require(pipe(pipe_fds.data()) == 0, "pipe");
    const pid_t pid = fork();
    Require(pid >= 0, "fork");
    if (pid == 0) {
      close(pipe_fds[0]);
      const Say say = [&](const std::string& text) {
        Require(write(pipe_fds[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()),
                "write");
      };
      // Skips the parent's destructors and exit handlers.
      _exit(body(member, say));
    }
    close(pipe_fds[1]);
    children_.push_back({.pid = pid, .pipe = pipe_fds[0]});
  }
}

ForkedMembers::~ForkedMembers() {
  for (Child& child : children_) {
    if (!child.exit) {
      kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
    }
    close(child.pipe);
  }
}

void ForkedMembers::Signal(int member, int signal) const {
  kill(pid(member), signal);
}

bool ForkedMembers::Read(Child& child, std::chrono::steady_clock::time_point end) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  pollfd readable{child.pipe, POLLIN, 0};
  if (left.count() <= 0 || poll(&readable, 1, static_cast<int>(left.count())) <= 0) return false;
  std::array<char, 4096> buffer;
  const ssize_t length = read(child.pipe, buffer.data(), buffer.size());
  if (length <= 0) return false;
  child.said.append(buffer.data(), static_cast<std::size_t>(length));
  return true;
}

bool ForkedMembers::WaitFor(int member, const std::string& text) {
  Child& child = children_.at(static_cast<std::size_t>(member));
  const auto end = std::chrono::steady_clock::now() + kMembersDeadline;
  while (child.said.find(text) == std::string::npos) {
    if (!Read(child, end)) return false;
  }
  return true;
}

std::optional<int> ForkedMembers::Wait(int member) {
  Child& child = children_.at(static_cast<std::size_t>(member));
  if (child.exit) return child.exit;
  // The pipe is at its end when the child is.
  const auto end = std::chrono::steady_clock::now() + kMembersDeadline;
  while (Read(child, end)) {
  }
  if (std::chrono::steady_clock::now() >= end) return std::nullopt;
  int status = 0;
  Require(waitpid(child.pid, &status, 0) == child.pid, "waitpid");
  child.exit = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  return child.exit;
}

bool ForkedMembers::AllSucceed() {
  bool all = true;
  for (int member = 0; member < static_cast<int>(children_.size()); ++member) {
    if (Wait(member) != 0) {
      std::fprintf(stderr, "member %d: exit code %d: %s\n", member, Wait(member).value_or(999),
                   said(member).c_str());
      all = false;
    }
  }
  return all;
}

}  // namespace muster::trainer
