#include "rendezvous/daemon_credentials.h"

#include <utility>

#include "rendezvous/net/token_source.h"

namespace muster::rendezvous {

absl::StatusOr<Credentials> CredentialsFor(const ServerConfig& config, Keyring::Trouble trouble) {
  if (config.tokens.empty()) {
    return FindCredentials(config.token, config.listen, Role::kDaemon, std::move(trouble));
  }
  auto tenants = config.remembers() ? Keyring::OfDirectoryAgain(config.tokens, std::move(trouble))
                                    : Keyring::OfDirectory(config.tokens, std::move(trouble));
  if (!tenants.ok()) return tenants.status();
  return Credentials::FromKeyring(*std::move(tenants), Role::kDaemon);
}

}  // namespace muster::rendezvous
