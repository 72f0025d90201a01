// Runs one Muster command on many hosts and collects the results.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "launcher/remote/host_list.h"
#include "launcher/remote/link_command.h"

namespace muster::launcher {

struct HostQuery {
  std::vector<Host> hosts;
  // The arguments of `muster`. The command may run twice if a connection breaks.
  std::vector<std::string> command;
  // As in HostsRun.
  int fanout = 16;
  // The time for everything: to reach the hosts, and for the command to exit on each.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
  std::string launch_with;
  bool ships = true;
  // How long ssh keeps idle connections; zero: not at all.
  std::chrono::milliseconds ssh_control_persist = kSshControlPersist;
};

struct HostAnswer {
  // Why there is no result, to follow the host's name: "cannot be reached: ...". Empty: there is
  // one.
  std::string failure;
  // The command's, or 128+n if signal n killed it.
  int exit_code = 0;
  // Its stdout, cut after 4 MiB.
  std::string out;
  // Its stderr, cut likewise, in lines that are safe to show.
  std::vector<std::string> said;
};

// Asks all hosts through a launch tree, and waits until the tree has ended. The answers have the
// order of the hosts. Blocks; call it on the main thread, as it starts processes
// (worker/process/spawn.h).
std::vector<HostAnswer> AskHosts(const HostQuery& query);

}  // namespace muster::launcher
