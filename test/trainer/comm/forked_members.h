// Processes of one test program, for what they do with one another's memory.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace muster::trainer {

// Children of the test, forked from it, that each run `body(member, say)` and end with what it
// returns as exit code. What a child gives to say() comes to the parent. To be made while the test
// has one thread. Children that are still there are killed with this object.
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

  // Reads what the child says until that contains `text`; false when it ends, or half a minute
  // passes, without it.
  [[nodiscard]] bool WaitFor(int member, const std::string& text);
  // Waits for the child's end, for half a minute: its exit code, -n for signal n.
  std::optional<int> Wait(int member);
  // Whether all children end with 0.
  [[nodiscard]] bool AllSucceed();
  // All that the child has said so far.
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
  // False when the child has nothing more to say or the time is over.
  static bool Read(Child& child, std::chrono::steady_clock::time_point end);

  std::vector<Child> children_;
};

}  // namespace muster::trainer
