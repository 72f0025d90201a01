// Sockets that this process' parent has opened for it: systemd's socket activation, as in
// sd_listen_fds(3). Connections wait in them while no daemon runs, so none is refused during a
// restart.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "rendezvous/net/endpoint.h"

namespace muster::rendezvous {

struct GivenSockets {
  // Listening TCP sockets, close-on-exec, owned by the caller; empty: none were passed.
  std::vector<int> sockets;
  // Where they listen: the first address that is not loopback, if there is one, so that the checks
  // for a daemon that other machines can reach apply.
  Endpoint at;
};

// Takes them, and removes LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES from the environment, so that
// no child uses them. None if the variables are missing or meant for another process.
// InvalidArgument if they are malformed, or one of the descriptors is not a listening TCP socket.
// Call once, before there are threads.
absl::StatusOr<GivenSockets> TakeGivenSockets();

// --ready-fd: how a server tells its parent that clients can connect.

// Writes "PORT\n" to the descriptor and closes it. Does nothing for -1. Only warns if the reader is
// gone. SIGPIPE must be ignored.
void AnnounceReady(int fd, std::uint16_t port);

// The limit on this process' open files and connections.

// Raises the soft limit (RLIMIT_NOFILE), which login shells and containers leave at 1024 for the
// sake of select(), to the hard one, up to 131,072: one for each agent of the largest job, while a
// flood of connections cannot take more memory than those need. Returns the former limit if it was
// raised; programs started by this process should get that one.
std::optional<rlim_t> RaiseDescriptorLimit();

}  // namespace muster::rendezvous
