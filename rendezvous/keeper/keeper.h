// The main process of a musterd that remembers its jobs.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/journal/state_directory.h"

namespace muster::rendezvous {

struct KeeperOptions {
  // The command line of this process, and so also the daemon's.
  std::vector<std::string> argv;
  // Listening sockets; the keeper owns them from now on.
  std::vector<int> sockets;
  StateDirectory state;
  // As in ServerConfig: the keeper writes to it, once.
  int ready_fd = -1;
};

// Keeps a daemon: starts it as a child, from this process's own program, starts it again when it
// dies, and meanwhile holds what must never be without a holder: the port, the state directory, and
// the key by which it answers agents that knock (KeeperPolicy says when). The daemon never outlives
// it (PR_SET_PDEATHSIG). Returns the exit code when the keeper is to end.
//
//   SIGTERM, SIGINT   the daemon is told to end, and the keeper ends with it
//   SIGHUP            the daemon ends in good order and is started again, from what is at the
//                     program's path now. When it comes because the terminal is gone: as SIGTERM
//
// One process, one thread, no loop but poll(): to be called before there are other threads. It logs
// to spdlog's default logger, which must not block (keeper_log.h).
int RunKeeper(KeeperOptions options);

}  // namespace muster::rendezvous
