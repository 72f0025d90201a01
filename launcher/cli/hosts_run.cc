#include "launcher/cli/hosts_run.h"

#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "base/text.h"
#include "launcher/cli/program.h"
#include "rendezvous/net/find_credentials.h"

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
  if (flags.options.node_rank) {
    return Contradiction("--node-rank", "the order of the hosts is that of their ranks");
  }
  if (!flags.master_addr.empty() || flags.rdzv_backend == "static") {
    return Contradiction("a static rendezvous", "the first host serves one");
  }
  if (!flags.options.local_addr.empty()) {
    return Contradiction("--local-addr", "each host has its own");
  }
  if (flags.options.token.fd >= 0) {
    return Contradiction("--token-fd", "the job's token is made for it and passed on");
  }
  if (flags.options.purpose != Purpose::kRun) {
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
  // Their own PATH leads elsewhere.
  if (const std::string python = PythonHere(environment); !python.empty()) {
    exported[kPythonOfCommand] = python;
  }
  return ToBlock(exported);
}

// The flags that start a job on every host with one command.

absl::StatusOr<std::string> ReadExport(absl::string_view text) {
  if (!text.empty() && text.front() != '=') return std::string(text);
  return absl::InvalidArgumentError("is not a variable; write NAME or NAME=VALUE");
}

Problem AddExport(absl::string_view value, RunFlags& flags) {
  auto variable = ReadExport(value);
  if (!variable.ok()) return std::string(variable.status().message());
  flags.exported.push_back(*std::move(variable));
  return std::nullopt;
}

constexpr Flag kHostFlags[] = {
    {.name = "--hosts",
     .short_name = "-H",
     .has_variable = false,
     .local_only = true,
     .ours = true,
     .value_name = "HOST[:N],...",
     .help = "Start a node on each of these hosts, by ssh, from here: node0:8,node[1-3]:4 are four "
             "nodes with 8, 4, 4 and 4 workers. Without a number a host has --nproc-per-node's. "
             "This machine need not be one of them. The first serves the rendezvous, unless "
             "--rdzv-endpoint names a musterd.",
     .default_text = "none; this machine is a node",
     .set = Store<ParseHostList, &RunFlags::hosts>},
    {.name = "--hostfile",
     .has_variable = false,
     .local_only = true,
     .ours = true,
     .value_name = "FILE",
     .help = "The same from a file, a host on each line: node0, node0:8 or node0 slots=8.",
     .default_text = "none",
     .set = Store<ReadText, &RunFlags::hostfile>},
    {.name = "--fanout",
     .has_variable = false,
     .local_only = true,
     .ours = true,
     .value_name = "N",
     .help = "How many hosts one process starts itself; those start the others.",
     .default_text = "16",
     .set = Store<ReadNumberAboveZero, &RunFlags::fanout>},
    {.name = "--launch-with",
     .has_variable = false,
     .local_only = true,
     .ours = true,
     .value_name = "COMMAND",
     .help = "What connects to a host instead of ssh, such as 'docker exec -i {host} sh -c "
             "{command}'. {user} is there, too.",
     .default_text = "ssh",
     .set = Store<ReadLaunchWith, &RunFlags::launch_with>},
    {.name = "--ssh-control-persist",
     .has_variable = false,
     .local_only = true,
     .ours = true,
     .value_name = "SECONDS",
     .help =
         "How long ssh keeps an unused connection to a host open, so that the next command starts "
         "there in a fraction of the time; 0: it closes with its command. Where your ssh "
         "configuration has a ControlPath, a proxy or a forwarded agent for a host, none is kept.",
     .default_text = "60",
     .set = Store<ReadSeconds, &RunFlags::ssh_control_persist>},
    {.name = "--no-copy",
     .kind = Flag::Kind::kSwitch,
     .has_variable = false,
     .local_only = true,
     .ours = true,
     .help = "Do not send this program to hosts that have no muster, or a different build: such "
             "hosts count as unreachable.",
     .set = Store<ReadSwitch, &RunFlags::no_copy>},
    {.name = "--export",
     .has_variable = false,
     .local_only = true,
     .ours = true,
     .value_name = "NAME[=VALUE]",
     .help = "A variable to pass to all hosts; may be repeated. Variables that begin with PET_, "
             "NCCL_, GLOO_, OMP_, TORCH, PYTORCH or PYTHON are always passed.",
     .default_text = "none",
     .set = Apply<AddExport>},
};

}  // namespace

bool AsksForHosts(const RunFlags& flags) {
  return !flags.hosts.empty() || !flags.hostfile.empty();
}

absl::StatusOr<HostsRun> MakeHostsRun(const RunFlags& flags, Dialect dialect,
                                      const Environment& environment) {
  const absl::Status status = CheckFlags(flags);
  if (!status.ok()) return status;
  if (flags.operands.empty()) {
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
  run.min_nodes = flags.nodes_given ? flags.options.min_nodes : count;
  if (flags.nodes_given && flags.options.max_nodes != count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--nnodes asks for ", flags.options.max_nodes, " nodes, and there are ", count,
        " hosts; leave it out, or write --nnodes=MIN:", count, " to start without some of them"));
  }
  run.fanout = flags.fanout;
  run.answer_timeout = flags.options.timeouts.connect;
  run.launch_with = flags.launch_with;
  run.ssh_control_persist = flags.ssh_control_persist;
  run.ships = !flags.no_copy;
  run.dialect = dialect == Dialect::kLaunch ? "launch" : "run";
  run.flags = flags.passed_on;
  run.command = flags.operands;
  run.environment = ExportedVariables(flags, environment);
  std::error_code ignored;
  run.directory = std::filesystem::current_path(ignored).string();
  run.run_id = flags.options.run_id.empty() ? absl::StrCat("hosts-", base::RandomName(8))
                                            : flags.options.run_id;
  run.endpoint = flags.rdzv_endpoint;
  auto token = rendezvous::CompleteTokenSource(
      flags.options.token, [&](const char* variable) { return GetOr(environment, variable, ""); });
  if (!token.ok()) return token.status();
  run.token = *std::move(token);
  run.stop_signals = flags.options.stop_signals;
  run.shutdown_timeout = flags.options.shutdown_timeout;
  run.detach = flags.options.detach;
  return run;
}

FlagGroup HostFlags() {
  return {"Hosts: one command for all of them", kHostFlags};
}

std::vector<Flag> AskedHostFlags() {
  std::vector<Flag> flags = PickRunFlags(
      {"--hosts", "--hostfile", "--launch-with", "--ssh-control-persist", "--no-copy"});
  flags[0].value_name = "HOST,...";
  flags[0].help =
      "Ask these hosts, by ssh, instead of this machine: node0,node[1-3]. Each answers for the "
      "user who is logged in there.";
  flags[0].default_text = "none; this machine is asked";
  flags[1].help = "The same from a file, a host on each line.";
  return flags;
}

}  // namespace muster::launcher
