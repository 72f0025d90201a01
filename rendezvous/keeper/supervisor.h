// The main process of a musterd with a journal.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/journal/state_directory.h"

namespace muster::rendezvous {

struct SupervisorOptions {
  // The complete command line of the daemon; used again after each death, even if the configuration
  // file has changed since.
  std::vector<std::string> argv;
  // Builds such a command line from the current configuration; an error is one sentence.
  std::function<absl::StatusOr<std::vector<std::string>>()> read_again;
  // Whether a daemon can start with the last configuration read: its tokens may be missing.
  std::function<absl::Status()> check;
  // Listening sockets, owned by the keeper from now on. None: the daemon opens its own, and no
  // process answers probes while it is dead, as another daemon may lead then.
  std::vector<int> sockets;
  // Set if there is a state directory.
  std::optional<StateDirectory> state;
  // Otherwise a file shared by the daemons of this keeper.
  int shared_file = -1;
  // As in ServerConfig: the keeper writes to it, once.
  int ready_fd = -1;
};

// Keeps a daemon running: starts it as a child from this process' own program, restarts it when it
// dies, and meanwhile holds what must always have a holder: the port, the state directory, and the
// key for answering agents that probe (SupervisorPolicy says when). The daemon never outlives the
// keeper (PR_SET_PDEATHSIG). Returns the keeper's exit code.
//
//   SIGTERM, SIGINT   stops the daemon, then the keeper
//   SIGHUP            reads and checks the configuration. The daemon shuts down and restarts
//                     with it, from the program now at the path; a bad configuration changes
//                     nothing. If sent because the terminal is gone: as SIGTERM
//
// One process, one thread, no loop but poll(): call it before there are other threads. It logs to
// spdlog's default logger, which must not block (daemon_log.h).
int RunKeeper(SupervisorOptions options);

}  // namespace muster::rendezvous
