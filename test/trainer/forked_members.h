// Forked processes of a test, for tests of shared memory.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace muster::trainer {

// Children forked from the test. Each runs `body(member, say)` and exits with what it returns. Text
// that a child passes to say() is sent to the parent. Create this object while the test has only
// one thread. The destructor kills the remaining children.
class ForkedMembers {
 public:
  using Say = std::function<void(const std::string&)>;
  using Body = std::function<int(int member, const Say& say)>;

  ForkedMembers(int count, const Body& body);
  ~ForkedMembers();
  ForkedMembers(const ForkedMembers&) = delete;
  ForkedMembers& operator=(const ForkedMembers&) = delete;

  pid_t pid(int member) const { return children_.at(static_cast<std::size_t>(member)).pid; }
  void Signal(int member, int signal) const;

  // Reads what the child says until that contains `text`; false if the child ends or half a minute
  // passes first.
  [[nodiscard]] bool WaitFor(int member, const std::string& text);
  // Waits up to half a minute for the child to end. Returns its exit code, -n for signal n.
  std::optional<int> Wait(int member);
  // Waits for all children; whether each exits with 0.
  [[nodiscard]] bool AllSucceed();
  // Everything read from the child so far.
  const std::string& said(int member) const {
    return children_.at(static_cast<std::size_t>(member)).said;
  }

 private:
  struct Child {
    pid_t pid = -1;
    int pipe = -1;
    std::string said;
    std::optional<int> exit;
  };
  // False when the child has closed its end or the time is over.
  static bool Read(Child& child, std::chrono::steady_clock::time_point end);

  std::vector<Child> children_;
};

}  // namespace muster::trainer
