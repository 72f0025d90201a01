#include "rendezvous/fronts/admission.h"

#include <grpcpp/server_context.h>

#include "rendezvous/net/host_address.h"

namespace muster::rendezvous {

Caller CallerOf(const grpc::ServerContextBase& call) {
  Caller caller{.peer = ParsePeer(call.peer())};
  if (const auto address = ParseHostAddress(caller.peer.address)) caller.host = HostLine(*address);
  return caller;
}

}  // namespace muster::rendezvous
