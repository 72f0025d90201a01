// One question to many hosts: a command of Muster's that runs on each of them.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "launcher/hosts/host_list.h"
#include "launcher/hosts/kept_connections.h"

namespace muster::launcher {

struct HostQuery {
  std::vector<Host> hosts;
  // What follows `muster`. It may be run twice where a connection breaks.
  std::vector<std::string> command;
  // As HostsRun's.
  int fanout = 16;
  // How long all of it may take: to reach the hosts, and until the command has ended on each.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
  std::string launch_with;
  bool ships = true;
  // How long ssh keeps connections that nothing uses; zero: not at all.
  std::chrono::milliseconds ssh_persist = kSshPersist;
};

struct HostAnswer {
  // Why there is no answer, to complete "node0 ...": "cannot be reached: ...". Empty: there is one.
  std::string failure;
  // Of the command, or 128+n where signal n ended it.
  int exit_code = 0;
  // What it printed, up to 4 MiB; beyond that it is cut.
  std::string out;
  // What it said on stderr, as much, in lines that are safe to show.
  std::vector<std::string> said;
};

// Asks all of them through a launch tree, which ends with it, and waits for the last. The answers
// are in the order of the hosts. Blocks; on the main thread, as it starts processes
// (worker/process/spawn.h).
std::vector<HostAnswer> AskHosts(const HostQuery& query);

}  // namespace muster::launcher
