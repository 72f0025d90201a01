// A program that a test runs and watches: its output, its signals, its exit.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace muster::test {

// A started program. It leads a process group of its own; whatever is left of that group is killed
// with this object. Single-threaded: output is read while one of the Wait functions runs, so a test
// that lets one program wait must not let another write more than a pipe holds (64 KiB).
class Command {
 public:
  // Far beyond what any test needs, on the slowest machine.
  static constexpr std::chrono::seconds kDeadline{30};

  // Starts argv[0], found along PATH, with this process's environment and `environment`
  // (NAME=VALUE, which win) on /dev/null and two pipes. When it cannot be started the exit code is
  // 127.
  explicit Command(std::vector<std::string> argv, const std::vector<std::string>& environment = {});
  ~Command();
  Command(Command&& other) noexcept;
  Command& operator=(Command&&) = delete;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  pid_t pid() const { return pid_; }
  // To the process alone, not to its group. Nothing happens once it has been waited for.
  void Signal(int signal) const;

  // Waits until what the program has written contains `text`; false when the program ends, or the
  // deadline passes, without it.
  [[nodiscard]] bool WaitForOut(const std::string& text) { return WaitFor(text, out_); }
  [[nodiscard]] bool WaitForErr(const std::string& text) { return WaitFor(text, err_); }

  // Waits for the program's end: its exit code, or -n when signal n killed it. Nothing when the
  // deadline passes first. Output that its children write later is not waited for.
  std::optional<int> Wait(std::chrono::seconds deadline = kDeadline);

  // What has been read so far.
  const std::string& out() const { return out_.text; }
  const std::string& err() const { return err_.text; }

 private:
  struct Stream {
    int fd = -1;
    std::string text;
  };
  using Time = std::chrono::steady_clock::time_point;

  bool WaitFor(const std::string& text, const Stream& stream);
  // Reads what there is, after waiting for more or for the program's end, until `end` at most.
  void Poll(Time end);
  void Drain(Stream& stream);

  pid_t pid_ = -1;
  int pidfd_ = -1;
  Stream out_;
  Stream err_;
  std::optional<int> exit_;
};

}  // namespace muster::test
