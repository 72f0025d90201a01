// The program that prints where the threads of a process are: which one, and with what arguments.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::worker {

// A command with a place for the pid. It is run as it is, without a shell.
class StackCommand {
 public:
  // "gdb -p {pid} -batch -ex 'thread apply all bt'". Words are separated by spaces; a word, or a
  // part of one, may be quoted with '...' or "...", and a backslash escapes the character after it,
  // except in '...'. Otherwise an error, whose message completes a sentence that begins with the
  // command: "has a quote that is not closed".
  static absl::StatusOr<StackCommand> Parse(std::string_view text);

  // What to run for this process.
  std::vector<std::string> ArgvFor(pid_t pid) const;

  // The program alone: "gdb".
  const std::string& program() const { return words_.front(); }

 private:
  explicit StackCommand(std::vector<std::string> words) : words_(std::move(words)) {}

  std::vector<std::string> words_;
};

// The first of py-spy (for a Python program), gdb and eu-stack that `is_installed` knows; nullopt
// when it knows none. py-spy shows the lines of the Python program, the others those of the
// interpreter.
std::optional<StackCommand> PickStackCommand(
    const std::function<bool(const std::string& program)>& is_installed, bool is_python);

// Looks along PATH.
bool IsInstalled(const std::string& program);

}  // namespace muster::worker
