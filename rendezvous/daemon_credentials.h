// What agents and tools have to prove to a musterd.
#pragma once

#include "absl/status/statusor.h"
#include "rendezvous/identity/keyring.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/server_config.h"

namespace muster::rendezvous {

// As the configuration says; an error is the user's mistake, in one sentence. `trouble` hears of
// files that cannot be used later. May make the user's own token (FindCredentials), and may wait
// for a disk.
absl::StatusOr<Credentials> CredentialsFor(const ServerConfig& config,
                                           Keyring::Trouble trouble = {});

}  // namespace muster::rendezvous
