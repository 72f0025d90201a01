// Runs a program in a test: its output, signals and exit.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace muster::test {

// A started program, the leader of its own process group; the destructor kills what is left of the
// group. One thread. Output is read only during a Wait function and TakeIn(), so while a test waits
// for something else, the program must not write more than a pipe holds (64 KiB): it would stand
// still.
class Command {
 public:
  // Far more than any test needs, even on the slowest machine.
  static constexpr std::chrono::seconds kDeadline{30};

  // Starts argv[0], searched in PATH, or has it forked where it has a ForkServer. Its environment
  // is this process's, overridden by `environment` (NAME=VALUE); stdin is /dev/null, stdout and
  // stderr are pipes. If it cannot be started, its exit code is 127.
  explicit Command(std::vector<std::string> argv, const std::vector<std::string>& environment = {});
  ~Command();
  Command(Command&& other) noexcept;
  Command& operator=(Command&&) = delete;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  pid_t pid() const { return pid_; }
  // Sends a signal to the process only, not to its group. No effect once it has been waited for.
  void Signal(int signal) const;

  // Waits until the program's output contains `text`; false if the program ends or the deadline
  // passes first.
  [[nodiscard]] bool WaitForOut(const std::string& text) { return WaitFor(text, out_); }
  [[nodiscard]] bool WaitForErr(const std::string& text) { return WaitFor(text, err_); }

  // Waits for the program to end. Returns its exit code, or -n if signal n killed it; nothing if
  // the deadline passes first. Does not wait for output that its children write later.
  std::optional<int> Wait(std::chrono::seconds deadline = kDeadline);

  // Reads what the program has written, without waiting.
  void TakeIn();

  // The output read so far.
  const std::string& out() const { return out_.text; }
  const std::string& err() const { return err_.text; }

 private:
  struct Stream {
    int fd = -1;
    std::string text;
  };
  using Time = std::chrono::steady_clock::time_point;

  bool WaitFor(const std::string& text, const Stream& stream);
  // Waits for output or for the program's end, until `end` at most, and reads what there is.
  void Poll(Time end);
  void Drain(Stream& stream);

  pid_t pid_ = -1;
  int pidfd_ = -1;
  Stream out_;
  Stream err_;
  std::optional<int> exit_;
};

// The words of a command line; blanks are between them.
std::vector<std::string> WordsOf(const std::string& line);

// The words of a command line, and those that come after them.
std::vector<std::string> Joined(std::vector<std::string> words,
                                const std::vector<std::string>& more);

}  // namespace muster::test
