// Why a connection to the daemon ended, as gRPC tells it.
#pragma once

#include <string>

#include <grpcpp/support/status.h>

namespace muster::rendezvous {

struct ConnectionError {
  // For people: "Connection refused", "its name does not resolve: Domain name not found".
  std::string cause;
  // The other machine is up and nobody listens there.
  bool refused = false;
  // The name could not be resolved.
  bool unresolved = false;
};

ConnectionError ReadConnectionError(const grpc::Status& status);

}  // namespace muster::rendezvous
