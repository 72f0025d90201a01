// The main process of a musterd that remembers its jobs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/journal/state_directory.h"

namespace muster::rendezvous {

struct KeeperOptions {
  // The command line of the daemon, with all that it is told: what it was told first, it is told
  // again after each death, whatever has become of the file that it came from.
  std::vector<std::string> argv;
  // Such a command line, as the user's configuration is now; an error is one sentence.
  std::function<absl::StatusOr<std::vector<std::string>>()> read_again;
  // Whether a daemon can start with what was read last: its tokens may be missing.
  std::function<absl::Status()> check;
  // Listening sockets; the keeper owns them from now on. None: the daemon opens its own, and nobody
  // answers knocks while it is dead, as another daemon may lead then.
  std::vector<int> sockets;
  // Where there is one.
  std::optional<StateDirectory> state;
  // Else a file that daemons of this keeper share.
  int shared_file = -1;
  // As in ServerConfig: the keeper writes to it, once.
  int ready_fd = -1;
};

// Keeps a daemon: starts it as a child, from this process's own program, starts it again when it
// dies, and meanwhile holds what must never be without a holder: the port, the state directory, and
// the key by which it answers agents that knock (KeeperPolicy says when). The daemon never outlives
// it (PR_SET_PDEATHSIG). Returns the exit code when the keeper is to end.
//
//   SIGTERM, SIGINT   the daemon is told to end, and the keeper ends with it
//   SIGHUP            the configuration is read again and checked. The daemon ends in good order
//                     and is started again with it, from what is at the program's path now; a
//                     configuration that is no good changes nothing. When it comes because the
//                     terminal is gone: as SIGTERM
//
// One process, one thread, no loop but poll(): to be called before there are other threads. It logs
// to spdlog's default logger, which must not block (keeper_log.h).
int RunKeeper(KeeperOptions options);

}  // namespace muster::rendezvous
