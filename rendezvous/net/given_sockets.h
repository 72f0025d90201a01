// Sockets that whoever started this process has opened for it: systemd's socket activation, as
// sd_listen_fds(3) has it. Connections wait in them while no daemon runs, so none is refused when a
// daemon is started again.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "rendezvous/net/endpoint.h"

namespace muster::rendezvous {

struct GivenSockets {
  // Listening TCP sockets, close-on-exec, which the caller owns; empty: none was given.
  std::vector<int> sockets;
  // Where they listen: the address of the first that is not a loopback one, if there is one, so
  // that what protects a daemon from other machines is not left out.
  Endpoint at;
};

// Takes them, and removes LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES from the environment, so that
// no child takes them for its own. None when the variables are missing or meant for another
// process. InvalidArgument when they cannot be read, or when one of the descriptors is no listening
// TCP socket. To be called once, before there are threads.
absl::StatusOr<GivenSockets> TakeGivenSockets();

}  // namespace muster::rendezvous
