// musterd's command line.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/etcd_config.h"
#include "rendezvous/identity/token_source.h"
#include "rendezvous/net/endpoint.h"

namespace muster::rendezvous {

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

}  // namespace muster::rendezvous
