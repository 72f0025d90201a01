#include "launcher/flags/flags.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/random_name.h"
#include "launcher/config/base_environment.h"
#include "launcher/config/program.h"
#include "launcher/flags/completion.h"
#include "launcher/flags/flag_help.h"
#include "launcher/flags/flag_scanner.h"
#include "launcher/machine/devices.h"
#include "launcher/machine/omp.h"
#include "launcher/version.h"

namespace muster::launcher {
namespace {

std::string NodesText(const RunFlags& flags) {
  return flags.min_nodes == flags.max_nodes
             ? absl::StrCat("--nnodes=", flags.max_nodes)
             : absl::StrCat("--nnodes=", flags.min_nodes, ":", flags.max_nodes);
}

// The rank that the scheduler gave this node. What is no number there is not meant for us.
std::optional<int> SchedulerRank(const Environment& environment) {
  for (const char* variable : {"SLURM_NODEID", "JOB_COMPLETION_INDEX"}) {
    int rank = 0;
    if (absl::SimpleAtoi(GetOr(environment, variable, ""), &rank) && rank >= 0) return rank;
  }
  return std::nullopt;
}

// torchrun's static rendezvous.
RendezvousMode StaticMode(const RunFlags& flags) {
  return flags.max_nodes == 1 ? RendezvousMode::kFixedPort : RendezvousMode::kStatic;
}

// The mode and endpoint when --rdzv-endpoint is given.
absl::Status SetEndpointMode(const RunFlags& flags, LaunchConfig& config) {
  const bool is_static = flags.rdzv_backend == "static";
  // A static endpoint is the workers' own MASTER_PORT, which nobody should have to guess.
  const auto endpoint = rendezvous::ParseEndpoint(
      flags.rdzv_endpoint,
      is_static ? std::nullopt : std::optional<std::uint16_t>(rendezvous::kDefaultRendezvousPort));
  if (!endpoint.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rdzv-endpoint=", flags.rdzv_endpoint, " ", endpoint.status().message()));
  }
  if (endpoint->port != 0) {
    config.endpoint = *endpoint;
    config.mode = is_static ? StaticMode(flags) : RendezvousMode::kEndpoint;
    return absl::OkStatus();
  }
  // torchrun's documented way to run several jobs on one machine is localhost:0.
  if (flags.max_nodes == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--rdzv-endpoint=", flags.rdzv_endpoint,
                                                 " has port 0, which the other nodes of ",
                                                 NodesText(flags), " cannot know; choose a port"));
}

// The mode and endpoint when --rdzv-endpoint is not given.
absl::Status SetMasterMode(const RunFlags& flags, LaunchConfig& config) {
  const int port = flags.master_port.value_or(0);
  // A master address alone does not make a job of one node static; torchrun does not look at it
  // either.
  if (flags.max_nodes == 1 && port == 0) return absl::OkStatus();
  if (flags.max_nodes > 1) {
    if (flags.master_addr.empty() && !flags.master_port) {
      return absl::InvalidArgumentError(
          absl::StrCat(NodesText(flags),
                       " needs --rdzv-endpoint=HOST:PORT, the same on every node, or "
                       "--master-addr and --node-rank"));
    }
    if (flags.master_port && port == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--master-port=0 leaves the port open, which the other nodes of ",
                       NodesText(flags), " cannot know; choose a port"));
    }
  }
  config.endpoint.host = flags.master_addr.empty() ? "127.0.0.1" : flags.master_addr;
  config.endpoint.port =
      static_cast<std::uint16_t>(port == 0 ? rendezvous::kDefaultMasterPort : port);
  const bool is_static = flags.rdzv_backend.empty() || flags.rdzv_backend == "static";
  config.mode = is_static || flags.max_nodes == 1 ? StaticMode(flags) : RendezvousMode::kEndpoint;
  return absl::OkStatus();
}

absl::Status SetMode(const RunFlags& flags, LaunchConfig& config) {
  if (!flags.standalone) {
    return flags.rdzv_endpoint.empty() ? SetMasterMode(flags, config)
                                       : SetEndpointMode(flags, config);
  }
  if (flags.min_nodes > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--standalone runs one node, but ", NodesText(flags), " asks for more; drop one of them"));
  }
  config.max_nodes = 1;
  return absl::OkStatus();
}

// Who this node is among the others.
absl::Status SetNodeRank(const RunFlags& flags, const Environment& environment,
                         LaunchConfig& config) {
  config.node_rank = flags.node_rank;
  if (config.max_nodes == 1) return absl::OkStatus();
  if (!config.node_rank) config.node_rank = SchedulerRank(environment);
  if (config.mode != RendezvousMode::kStatic) return absl::OkStatus();

  // torchrun's static rendezvous has no minimum: all nodes, with rank 0 for the one that does not
  // say.
  config.min_nodes = config.max_nodes;
  if (!config.node_rank) config.node_rank = 0;
  if (*config.node_rank >= config.max_nodes) {
    return absl::InvalidArgumentError(absl::StrCat("node rank ", *config.node_rank,
                                                   " is not among the nodes of ", NodesText(flags),
                                                   ", which count from 0; correct one of the two"));
  }
  return absl::OkStatus();
}

std::string ChooseRunId(const RunFlags& flags, RendezvousMode mode) {
  // --standalone overrides every --rdzv flag, as torchrun's does: two such jobs on one machine
  // never share a name, whatever the script around them gives.
  if (!flags.rdzv_id.empty() && !flags.standalone) return flags.rdzv_id;
  // Nodes that meet must agree on the id, so it cannot be drawn; "none" is torchrun's.
  return mode == RendezvousMode::kStandalone ? absl::StrCat("standalone-", base::RandomName(8))
                                             : "none";
}

// The numbers of workers and nodes; with --total-workers one of them follows from the other.
absl::Status SetSizes(const RunFlags& flags, const Environment& environment, const Machine& machine,
                      LaunchConfig& config) {
  config.min_nodes = flags.min_nodes;
  config.max_nodes = flags.max_nodes;
  if (!flags.total_workers || flags.nproc_given) {
    const auto nproc = ParseNproc(flags.nproc_per_node, machine, environment);
    if (!nproc.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--nproc-per-node=", flags.nproc_per_node, " ", nproc.status().message()));
    }
    config.nproc_per_node = *nproc;
  }
  if (!flags.total_workers) return absl::OkStatus();

  const int total = *flags.total_workers;
  const std::string given = absl::StrCat("--total-workers=", total);
  if (flags.min_nodes != flags.max_nodes) {
    return absl::InvalidArgumentError(absl::StrCat(given, " does not go with ", NodesText(flags),
                                                   ", where the number of workers is open; give "
                                                   "--nproc-per-node instead"));
  }
  const int parts = flags.nproc_given ? config.nproc_per_node : config.max_nodes;
  const std::string part_name = flags.nproc_given
                                    ? absl::StrCat("--nproc-per-node=", flags.nproc_per_node)
                                    : NodesText(flags);
  const bool agree =
      !flags.nodes_given || !flags.nproc_given || total == config.max_nodes * config.nproc_per_node;
  if (total % parts != 0 || !agree) {
    return absl::InvalidArgumentError(
        absl::StrCat(given, " does not fit ", part_name,
                     flags.nproc_given && flags.nodes_given
                         ? absl::StrCat(" and ", NodesText(flags), "; leave one of the three out")
                         : "; give a multiple of it"));
  }
  if (!flags.nproc_given) {
    config.nproc_per_node = total / parts;
  } else {
    config.min_nodes = config.max_nodes = total / parts;
  }
  return absl::OkStatus();
}

// Which devices the workers get.
absl::Status SetDevices(const RunFlags& flags, const Environment& environment,
                        const Machine& machine, LaunchConfig& config) {
  if (!flags.devices.empty()) {
    const std::vector<GpuDevice> gpus = GpusOf(machine);
    auto devices = CheckDevices(flags.devices, gpus, environment);
    if (!devices.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--devices=", flags.devices, " ", devices.status().message()));
    }
    config.devices = *std::move(devices);
    const std::string note = DevicesNote(flags.devices, gpus);
    if (!note.empty()) config.notes.push_back(note);
  }
  return absl::OkStatus();
}

// How the devices and CPUs are dealt out to the workers.
absl::Status SetSharing(const RunFlags& flags, const Environment& environment,
                        LaunchConfig& config) {
  config.numa_binding = flags.numa_binding;
  config.virtual_local_rank = flags.virtual_local_rank;
  if (!config.virtual_local_rank) return absl::OkStatus();
  return DeviceOfRank(config.nproc_per_node - 1, BaseEnvironment(config, environment)).status();
}

absl::Status SetProgram(const RunFlags& flags, std::vector<std::string> command, Dialect dialect,
                        const Environment& environment, LaunchConfig& config) {
  if (flags.module && flags.no_python) {
    return absl::InvalidArgumentError(
        "--module and --no-python exclude each other: a module is run by Python; drop one of them");
  }
  if (flags.module && flags.run_path) {
    return absl::InvalidArgumentError(
        "--module and --run-path exclude each other: one names a module, the other a file; drop "
        "one of them");
  }
  if (command.empty()) {
    return absl::InvalidArgumentError(
        "no script to run; write `muster run [flags] script [script args...]`");
  }
  if (dialect == Dialect::kLaunch && !flags.use_env) {
    command.insert(command.begin() + 1, absl::StrCat(flags.local_rank_flag, "=${local_rank}"));
  }
  auto program = MakeProgram(command,
                             flags.run_path    ? ProgramKind::kRunPath
                             : flags.module    ? ProgramKind::kModule
                             : flags.no_python ? ProgramKind::kCommand
                                               : ProgramKind::kScript,
                             environment);
  if (!program.ok()) return program.status();
  config.program = *std::move(program);
  return absl::OkStatus();
}

absl::Status CheckHang(const HangPolicy& hang) {
  const HangPolicy none{.stack_command = hang.stack_command};
  if (hang.timeout.count() > 0 || hang == none) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--hang-action, --hang-signs and --hang-first-beat-timeout say what happens to hung workers, "
      "but nobody is watched; give --hang-timeout=SECONDS, too");
}

absl::StatusOr<LaunchConfig> MakeConfig(const ScannedArgs& scanned, Dialect dialect,
                                        const Environment& environment, const Machine& machine) {
  RunFlags flags = scanned.flags;
  LaunchConfig config;
  config.purpose = flags.print_config ? Purpose::kPrintConfig
                   : flags.dry_run    ? Purpose::kDryRun
                                      : Purpose::kRun;
  config.notes = flags.notes;
  config.role = flags.role;
  config.local_addr = flags.local_addr;

  absl::Status status = SetDevices(flags, environment, machine, config);
  if (status.ok()) {
    status = SetSizes(flags, BaseEnvironment(config, environment), machine, config);
  }
  if (status.ok()) status = SetSharing(flags, environment, config);
  // What follows asks how many nodes there are, whichever flag said so.
  flags.min_nodes = config.min_nodes;
  flags.max_nodes = config.max_nodes;
  if (status.ok()) status = SetMode(flags, config);
  if (status.ok()) status = SetNodeRank(flags, environment, config);
  if (status.ok()) status = CheckHang(flags.hang);
  if (status.ok()) status = SetProgram(flags, scanned.command, dialect, environment, config);
  if (!status.ok()) return status;

  config.run_id = ChooseRunId(flags, config.mode);
  config.timeouts = flags.timeouts;
  config.is_host = flags.is_host;
  config.trust_refusals = flags.trust_refusals;
  const bool is_static =
      config.mode == RendezvousMode::kFixedPort || config.mode == RendezvousMode::kStatic;
  if (is_static && !flags.join_timeout_given) {
    config.timeouts.join = std::chrono::seconds(900);  // torchrun's default for static alone
  }
  const bool share_disabled = GetOr(environment, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0") == "1";
  config.worker_store =
      flags.worker_store.value_or(share_disabled ? WorkerStore::kWorker : WorkerStore::kAgent);
  config.max_restarts = flags.max_restarts;
  config.restart = flags.restart;
  config.scale_up = flags.scale_up;
  config.final_exit_codes = flags.final_exit_codes;
  config.hang = flags.hang;
  config.health = flags.health;
  config.stop_signals = flags.stop_signals;
  config.shutdown_timeout = flags.shutdown_timeout;
  config.exit_code = flags.exit_code;
  config.log_dir = flags.log_dir;
  config.redirects = flags.redirects;
  config.tee = flags.tee;
  config.local_ranks_filter = flags.local_ranks_filter;
  config.stdout_filters = flags.stdout_filters;
  config.stderr_filters = flags.stderr_filters;
  config.prefix_template = flags.prefix_template;
  config.event_log = flags.event_log;
  config.log_level = flags.log_level;
  if (const auto omp = DefaultOmpThreads(config.nproc_per_node, environment)) {
    config.notes.push_back(omp->note);
  }
  return config;
}

}  // namespace

ParsedRun ParseRun(const std::vector<std::string>& args, Dialect dialect,
                   const Environment& environment, const Machine& machine) {
  const auto scanned = ScanArgs(args, dialect, environment);
  if (!scanned.ok()) return UsageError{std::string(scanned.status().message())};
  if (scanned->flags.help) return TextRequest{HelpText(dialect)};
  if (scanned->flags.version) return TextRequest{absl::StrCat("muster ", kVersion, "\n")};
  if (const auto shell = ParseShell(scanned->flags.print_completion)) {
    return TextRequest{CompletionScript(*shell)};
  }
  auto config = MakeConfig(*scanned, dialect, environment, machine);
  if (!config.ok()) return UsageError{std::string(config.status().message())};
  return *std::move(config);
}

}  // namespace muster::launcher
