#include "launcher/flags/hosts_run.h"

#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/random_name.h"
#include "launcher/hosts/hostfile.h"

namespace muster::launcher {
namespace {

// What workers, and the flags of their agents, are commonly told by the environment. Neither where
// this machine is in a scheduler's job, nor its devices, nor any secret of its own.
constexpr const char* kExported[] = {"PET_",  "NCCL_",   "GLOO_", "OMP_",
                                     "TORCH", "PYTORCH", "PYTHON"};

absl::Status Contradiction(const char* flag, const char* why) {
  return absl::InvalidArgumentError(
      absl::StrCat("--hosts does not go with ", flag, ": ", why, "; drop one of them"));
}

absl::Status CheckFlags(const RunFlags& flags) {
  if (!flags.hosts.empty() && !flags.hostfile.empty()) {
    return Contradiction("--hostfile", "both say which hosts there are");
  }
  if (flags.standalone) return Contradiction("--standalone", "that is one node, without a network");
  if (flags.total_workers) {
    return Contradiction("--total-workers", "the hosts' numbers say how many workers there are");
  }
  if (flags.config.node_rank) {
    return Contradiction("--node-rank", "the order of the hosts is that of their ranks");
  }
  if (!flags.master_addr.empty() || flags.rdzv_backend == "static") {
    return Contradiction("a static rendezvous", "the first host serves one");
  }
  if (!flags.config.local_addr.empty()) {
    return Contradiction("--local-addr", "each host has its own");
  }
  if (flags.config.token.fd >= 0) {
    return Contradiction("--token-fd", "the job's token is made for it and passed on");
  }
  if (flags.config.purpose != Purpose::kRun) {
    return Contradiction("--dry-run and --print-config", "they show this machine as a node");
  }
  return absl::OkStatus();
}

std::vector<std::string> ExportedVariables(const RunFlags& flags, const Environment& environment) {
  Environment exported;
  for (const auto& [name, value] : environment) {
    for (const char* const prefix : kExported) {
      if (absl::StartsWith(name, prefix)) exported[name] = value;
    }
  }
  for (const std::string& given : flags.exported) {
    const std::size_t equals = given.find('=');
    const std::string name = given.substr(0, equals);
    if (equals != std::string::npos) {
      exported[name] = given.substr(equals + 1);
    } else if (const auto found = environment.find(name); found != environment.end()) {
      exported[name] = found->second;
    }
  }
  return ToBlock(exported);
}

}  // namespace

bool AsksForHosts(const RunFlags& flags) {
  return !flags.hosts.empty() || !flags.hostfile.empty();
}

absl::StatusOr<HostsRun> MakeHostsRun(const ScannedArgs& scanned, Dialect dialect,
                                      const Environment& environment) {
  const RunFlags& flags = scanned.flags;
  const absl::Status status = CheckFlags(flags);
  if (!status.ok()) return status;
  if (scanned.command.empty()) {
    return absl::InvalidArgumentError(
        "no script to run; write `muster run [flags] script [script args...]`");
  }
  HostsRun run;
  run.hosts = flags.hosts;
  if (!flags.hostfile.empty()) {
    auto hosts = ReadHostfile(flags.hostfile);
    if (!hosts.ok()) return hosts.status();
    run.hosts = *std::move(hosts);
  }
  const int count = static_cast<int>(run.hosts.size());
  run.min_nodes = flags.nodes_given ? flags.config.min_nodes : count;
  if (flags.nodes_given && flags.config.max_nodes != count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--nnodes asks for ", flags.config.max_nodes, " nodes, and there are ", count,
        " hosts; leave it out, or write --nnodes=MIN:", count, " to start without some of them"));
  }
  run.fanout = flags.fanout;
  run.answer_timeout = flags.config.timeouts.connect;
  run.launch_with = flags.launch_with;
  run.ssh_persist = flags.ssh_persist;
  run.ships = !flags.no_ship;
  run.dialect = dialect == Dialect::kLaunch ? "launch" : "run";
  run.flags = scanned.passed_on;
  run.command = scanned.command;
  run.environment = ExportedVariables(flags, environment);
  std::error_code ignored;
  run.directory = std::filesystem::current_path(ignored).string();
  run.run_id = flags.config.run_id.empty() ? absl::StrCat("hosts-", base::RandomName(8))
                                           : flags.config.run_id;
  run.endpoint = flags.rdzv_endpoint;
  auto token = rendezvous::CompleteTokenSource(
      flags.config.token, [&](const char* variable) { return GetOr(environment, variable, ""); });
  if (!token.ok()) return token.status();
  run.token = *std::move(token);
  run.stop_signals = flags.config.stop_signals;
  run.shutdown_timeout = flags.config.shutdown_timeout;
  run.detach = flags.config.detach;
  return run;
}

}  // namespace muster::launcher
