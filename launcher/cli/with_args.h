// How commands begin: their arguments are read, help is printed, a mistake is told.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cli/command.h"
#include "launcher/cli/print_output.h"

namespace muster::launcher {

// The arguments of `command` as its own struct. Where that has a Complete(variables), which checks
// that the parts fit together, it is called unless a text is asked for.
template <typename Args>
absl::StatusOr<Args> ReadArgs(const base::Command& command, const std::vector<std::string>& line,
                              base::Variables variables) {
  Args args;
  absl::Status status = base::ReadCommandLine(command, line, variables, args);
  if constexpr (requires { args.Complete(variables); }) {
    if (status.ok() && !args.asks_for_text) status = args.Complete(variables);
  }
  if (!status.ok()) return status;
  return args;
}

// What a command's row runs: kRun, with its arguments. Returns the exit code.
template <typename Args, int (*kRun)(const Args&)>
int WithArgs(const base::Call& call) {
  const std::string name = base::FullName(call.command);
  const absl::StatusOr<Args> args = ReadArgs<Args>(call.command, call.args, base::ReadVariable);
  if (!args.ok()) return Fail(name.c_str(), args.status().message(), kExitBadInput);
  if (args->help) return PrintOutput(name.c_str(), base::HelpText(call.command));
  return kRun(*args);
}

}  // namespace muster::launcher
