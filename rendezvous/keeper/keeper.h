// The main process of a musterd that remembers its jobs.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/journal/state_directory.h"

namespace muster::rendezvous {

struct KeeperOptions {
  // The command line of this process, and so the daemon's.
  std::vector<std::string> argv;
  // They listen; the keeper's from now on.
  std::vector<int> sockets;
  StateDirectory state;
  // As ServerConfig has it: written to by the keeper, once.
  int ready_fd = -1;
};

// Keeps a daemon: starts it as a child, by this process's own program, starts it again when it
// dies, and holds what must not be without a holder meanwhile: the port, the state directory, and
// the key by which it answers agents who knock (KeeperPolicy says when). The daemon never outlives
// it (PR_SET_PDEATHSIG). Returns the exit code when the keeper is to end.
//
//   SIGTERM, SIGINT   the daemon is told to end, and the keeper ends with it
//   SIGHUP            the daemon ends in good order and is started again, by what lies at the
//                     program's path now. When it comes because the terminal is gone: as SIGTERM
//
// One process, one thread, no loop but poll(): to be called before there are others. Its log is
// spdlog's default logger, which must not wait (keeper_log.h).
int RunKeeper(KeeperOptions options);

}  // namespace muster::rendezvous
