// What a gRPC status says about the connection to the daemon.
#pragma once

#include <cstddef>

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "rendezvous/client/connection_error.h"
#include "rendezvous/client/daemon_options.h"
#include "rendezvous/net/credentials.h"

namespace muster::rendezvous {

// What is read of a daemon's sentence.
inline constexpr std::size_t kMaxDaemonSentence = 4096;

// `proof` is what this end has shown.
ConnectionError ReadConnectionError(const grpc::Status& status, Credentials::Proof proof);

// Why a tool's call failed, in one sentence that begins with the endpoint. Unavailable when no
// Muster daemon answers there, or not within `patience`; otherwise the daemon's own code and words.
absl::Status ExplainFailure(const grpc::Status& status, const DaemonOptions& daemon);

}  // namespace muster::rendezvous
