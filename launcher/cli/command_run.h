// How commands begin and end: their arguments are read, help is printed, a mistake is told; what
// they have to say in the end, and the exit code.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/cli/command.h"

namespace muster::launcher {

// Writes all of `text` to stdout in the name of `command` ("muster ps"). kExitSuccess, or, once
// stderr says why that failed, kExitNodeFailed.
int PrintOutput(const char* command, const std::string& text);

// Says on stderr, in the name of `command`, what is wrong: one line, whatever `why` has in it.
// Returns `exit_code`.
int Fail(const char* command, absl::string_view why, int exit_code);

// The exit codes of `muster`, as README lists them. Besides these there is 128+n, for a signal n
// that ended the run, and with --exit-code=worker a worker's own code.

enum ExitCode : int {
  // Every worker exited with 0, or the command did what it was asked.
  kExitSuccess = 0,
  // A worker failed.
  kExitWorkerFailed = 1,
  // The command did what it was asked, and the answer is no, or is not complete: there is no such
  // job, a GPU is not fit, a host has not answered.
  kExitNo = 1,
  // The command line is wrong.
  kExitBadInput = 2,
  // The rendezvous cannot be reached or served, did not complete in time, refused this node or was
  // closed.
  kExitRendezvousFailed = 3,
  // This machine lacks what the command needs: a log directory that cannot be created, a port that
  // is taken.
  kExitNodeFailed = 4,
};

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
