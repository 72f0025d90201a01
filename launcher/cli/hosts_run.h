// A run on several hosts, as the user asked for it (--hosts): made once from the command line and
// the environment, read-only afterwards.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "launcher/cli/flag_table.h"
#include "launcher/machine/environment.h"
#include "launcher/remote/host_list.h"
#include "launcher/remote/link_command.h"
#include "rendezvous/identity/token_source.h"

namespace muster::launcher {

struct HostsRun {
  std::vector<Host> hosts;
  // How many nodes there must be; all hosts are nodes if they can be reached.
  int min_nodes = 1;
  // How many hosts one process starts by itself.
  int fanout = 16;
  // How long a host may take to answer.
  std::chrono::milliseconds answer_timeout = std::chrono::seconds(60);
  // The command that connects to a host; empty: ssh (launcher/remote/link_command.h).
  std::string launch_with;
  // Hosts that do not have this program are given it.
  bool ships = true;
  // How long ssh keeps connections that nothing uses; zero: not at all.
  std::chrono::milliseconds ssh_control_persist = kSshControlPersist;

  // "run" or "launch", and what follows it on each host: the user's flags without those that are
  // about hosts, and the script with its arguments.
  std::string dialect;
  std::vector<std::string> flags;
  std::vector<std::string> command;
  // NAME=VALUE, for every host.
  std::vector<std::string> environment;
  std::string directory;

  std::string run_id;
  // HOST:PORT of a musterd that the user named; empty: the first host serves the rendezvous.
  std::string endpoint;
  // How that musterd is met.
  rendezvous::TokenSource token;
  // As LaunchConfig's.
  std::vector<int> stop_signals;
  std::chrono::milliseconds shutdown_timeout{};
  bool detach = false;
};

// What a command line with --hosts or --hostfile means.

// Whether the job is to be started on hosts from here.
bool AsksForHosts(const RunFlags& flags);

// Checks that the parts fit together, and reads the hostfile. What the flags mean on a host is for
// the host to say: this machine may have other devices, and no such script. An error's message is a
// sentence for the user.
absl::StatusOr<HostsRun> MakeHostsRun(const RunFlags& flags, Dialect dialect,
                                      const Environment& environment);

// The flags of a command that asks hosts something, as fields of RunFlags: --hosts, and what goes
// with it.
std::vector<Flag> AskedHostFlags();

}  // namespace muster::launcher
