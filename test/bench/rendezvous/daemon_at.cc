#include "test/bench/rendezvous/daemon_at.h"

#include "rendezvous/identity/token.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"

namespace muster::rendezvous::bench {

absl::StatusOr<GrpcClientOptions> DaemonAt(const std::string& endpoint,
                                           const std::string& token_file) {
  const auto parsed = ParseEndpoints(endpoint, 0);
  if (!parsed.ok()) return parsed.status();
  GrpcClientOptions options{.endpoint = *parsed};
  if (token_file.empty()) return options;
  const auto token = ReadTokenFile(token_file);
  if (!token.ok()) return token.status();
  options.credentials = Credentials::FromToken(*token, Role::kAgent);
  return options;
}

}  // namespace muster::rendezvous::bench
