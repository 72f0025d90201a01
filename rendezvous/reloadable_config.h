// The configuration that a keeper hands its daemons.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "rendezvous/identity/keyring.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/server_config.h"

namespace muster::rendezvous {

// Reads a musterd's command line and file again, and puts all of it into one command line for the
// daemon, which then needs no file: what it is started with again does not hang on what somebody is
// about to write there. What the keeper itself holds, it has until its end: the port and the state
// directory.
class ReloadableConfig {
 public:
  // `argv` is the keeper's; `config` what it has meant at the start, with the endpoint at which the
  // keeper's sockets listen. `sockets_given`: by the service manager, so that the endpoint is not
  // for the configuration to say.
  ReloadableConfig(std::vector<std::string> argv, ServerConfig config, bool sockets_given);

  // The daemon's command line, as the configuration was at the start.
  std::vector<std::string> Argv() const { return ArgvOf(config_); }

  // As it is now. An error is one sentence: it cannot be read, has a mistake, or asks for what the
  // keeper cannot change.
  absl::StatusOr<std::vector<std::string>> ReadAgain();
  // Whether what was read last names tokens or certificates that a daemon can start with.
  absl::Status Check() const;

 private:
  std::vector<std::string> ArgvOf(const ServerConfig& config) const;
  absl::Status CheckWhatIsHeld(const ServerConfig& read) const;

  const std::vector<std::string> argv_;
  const ServerConfig config_;
  const bool sockets_given_;
  ServerConfig read_;  // last
};

// What agents and tools have to prove to a musterd.

// As the configuration says; an error is the user's mistake, in one sentence. `trouble` hears of
// files that cannot be used later. May make the user's own token (FindCredentials), and may wait
// for a disk.
absl::StatusOr<Credentials> CredentialsFor(const ServerConfig& config,
                                           Keyring::Trouble trouble = {});

}  // namespace muster::rendezvous
