// The exit codes of `muster`, as README lists them. Besides these there is 128+n, for a signal n
// that ended the run, and with --exit-code=worker a worker's own code.
#pragma once

namespace muster::launcher {

enum ExitCode : int {
  // Every worker exited with 0, or the command did what it was asked.
  kExitSuccess = 0,
  // A worker failed.
  kExitWorkerFailed = 1,
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
