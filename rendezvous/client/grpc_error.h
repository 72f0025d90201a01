// What a gRPC status says of the connection to the daemon.
#pragma once

#include <grpcpp/support/status.h>

#include "rendezvous/client/connection_error.h"

namespace muster::rendezvous {

ConnectionError ReadConnectionError(const grpc::Status& status);

}  // namespace muster::rendezvous
