// musterd's command line.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/etcd/etcd.h"
#include "rendezvous/identity/keyring.h"
#include "rendezvous/identity/token_source.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"

namespace muster::rendezvous {

// What a musterd's command line says of the etcd that holds its jobs.

struct EtcdConfig {
  // As --state named it: "etcd://h1:2379,h2:2379/muster".
  std::string url;
  std::vector<std::string> members;  // "HOST:PORT"
  std::string root;                  // "/muster": what all keys begin with
  // Files, in PEM; --etcd-ca, --etcd-cert, --etcd-key.
  std::string authority;
  std::string certificate;
  std::string key;
  // --etcd-user, --etcd-password-file.
  std::string user;
  std::string password_file;

  bool operator==(const EtcdConfig&) const = default;
};

// Reads "etcd://HOST[:PORT][,...][/PATH]"; without a path it is /muster. An error's message is a
// phrase that follows the text (WithoutUser): "is not ...".
absl::StatusOr<EtcdConfig> ParseEtcdUrl(absl::string_view url);
// For messages: what such a text has before an '@' may be a password, and is left out.
std::string WithoutUser(absl::string_view url);

// What is wrong with what goes together; one sentence.
absl::Status CheckEtcdConfig(const EtcdConfig& config);

// Reads the files, which the options' own `reread` does again. Errors are one sentence.
absl::StatusOr<etcd::EtcdOptions> ReadEtcdOptions(const EtcdConfig& config);

struct ServerConfig {
  // Where to listen; loopback unless the user names another address. Port 0: a free one.
  Endpoint listen{"127.0.0.1", kDefaultRendezvousPort};
  // A file descriptor to write "PORT\n" to, once connections are accepted; -1: none.
  int ready_fd = -1;
  // Where the token is that agents and tools have to prove.
  TokenSource token;
  // Or where the tokens of several tenants are, a file for each; empty: there is one user.
  std::string tokens;
  // Where the jobs are remembered, so that a daemon which was killed can resume them; empty:
  // nowhere.
  std::string state_dir;
  // Or in which etcd, where several daemons take turns; nullopt: in none.
  std::optional<EtcdConfig> etcd;
  // Where jobs and figures are shown over HTTP (pages/daemon_pages.h); nullopt: nowhere.
  std::optional<Endpoint> http;
  // Where nothing is remembered: how long SIGTERM waits for running jobs to end before it closes
  // them.
  std::chrono::seconds drain_timeout{30};
  // trace, debug, info, warning, error, off.
  std::string log_level = "info";
  // What --config names; empty: no file was read.
  std::string config_file;

  // It outlives its process.
  bool remembers() const { return !state_dir.empty() || etcd.has_value(); }
};

// The program only has to print `text`, to stdout when `exit_code` is 0, otherwise to stderr.
struct EarlyExit {
  int exit_code = 0;
  std::string text;
};

// Reads argv without argv[0], and the file that its --config names: TOML whose keys are the flags
// without their dashes. A flag outdoes the file; a key that is no flag is a mistake, and so is a
// file that is none: a FIFO is not waited for.
std::variant<ServerConfig, EarlyExit> ParseServerConfig(const std::vector<std::string>& arguments);

// The configuration that a keeper hands its daemons. Reads a musterd's command line and file again,
// and puts all of it into one command line for the daemon, which then needs no file: what it is
// started with again does not hang on what somebody is about to write there. What the keeper itself
// holds, it has until its end: the port and the state directory.
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
