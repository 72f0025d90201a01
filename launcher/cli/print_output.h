// What a command has to say in the end, and its exit code.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

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

}  // namespace muster::launcher
