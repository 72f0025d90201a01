// Where load generators find a daemon.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "rendezvous/client/rendezvous_client.h"

namespace muster::rendezvous::bench {

// As --endpoint (one place or several, separated by commas) and --token-file say; without a file it
// is a daemon that runs with --insecure.
absl::StatusOr<GrpcClientOptions> DaemonAt(const std::string& endpoint,
                                           const std::string& token_file);

}  // namespace muster::rendezvous::bench
