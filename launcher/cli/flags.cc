#include "launcher/cli/flags.h"

#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/version.h"
#include "launcher/cli/meeting.h"
#include "launcher/cli/program.h"
#include "launcher/machine/devices.h"
#include "rendezvous/net/find_credentials.h"

namespace muster::launcher {
namespace {

// The numbers of workers and nodes; with --total-workers one of them follows from the other.
absl::Status SetSizes(const RunFlags& flags, const Environment& environment, const Machine& machine,
                      LaunchConfig& config) {
  if (!flags.total_workers || flags.nproc_given) {
    const auto nproc = ParseNproc(flags.nproc_per_node, machine, environment);
    if (!nproc.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--nproc-per-node=", flags.nproc_per_node, " ", nproc.status().message()));
    }
    config.nproc_per_node = *nproc;
    // DevicesNote() speaks for --devices.
    const std::string note =
        flags.devices.empty() ? NprocNote(flags.nproc_per_node, machine, environment) : "";
    if (!note.empty()) config.notes.push_back(note);
  }
  if (!flags.total_workers) return absl::OkStatus();

  const int total = *flags.total_workers;
  const std::string given = absl::StrCat("--total-workers=", total);
  if (config.min_nodes != config.max_nodes) {
    return absl::InvalidArgumentError(absl::StrCat(given, " does not go with ", NodesText(config),
                                                   ", where the number of workers is open; give "
                                                   "--nproc-per-node instead"));
  }
  const int parts = flags.nproc_given ? config.nproc_per_node : config.max_nodes;
  const std::string part_name = flags.nproc_given
                                    ? absl::StrCat("--nproc-per-node=", flags.nproc_per_node)
                                    : NodesText(config);
  const bool agree =
      !flags.nodes_given || !flags.nproc_given || total == config.max_nodes * config.nproc_per_node;
  if (total % parts != 0 || !agree) {
    return absl::InvalidArgumentError(
        absl::StrCat(given, " does not fit ", part_name,
                     flags.nproc_given && flags.nodes_given
                         ? absl::StrCat(" and ", NodesText(config), "; leave one of the three out")
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
    const std::vector<GpuDevice> gpus = GpusOf(machine).gpus;
    auto devices = CheckDevices(flags.devices, gpus, environment);
    if (!devices.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--devices=", flags.devices, " ", devices.status().message()));
    }
    config.devices = *std::move(devices);
    const std::string note = DevicesNote(flags.devices, gpus);
    if (!note.empty()) config.notes.push_back(note);
  }
  const bool looked = !flags.devices.empty() || config.numa_binding ||
                      flags.nproc_per_node == "gpu" || flags.nproc_per_node == "auto";
  const std::string trouble = looked ? GpuTroubleNote(machine) : "";
  if (!trouble.empty()) config.notes.push_back(trouble);
  return absl::OkStatus();
}

// Whether there is a device for each worker that is to have its own.
absl::Status CheckSharing(const LaunchConfig& config, const Environment& environment) {
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
  if (command.front().empty()) {
    return absl::InvalidArgumentError(
        "the name of what is to be run is empty; was a variable not set?");
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
  if (!config.program.note.empty()) config.notes.push_back(config.program.note);
  return absl::OkStatus();
}

absl::Status SetToken(const Environment& environment, LaunchConfig& config) {
  auto token = rendezvous::CompleteTokenSource(
      config.token, [&](const char* variable) { return GetOr(environment, variable, ""); });
  if (!token.ok()) return token.status();
  config.token = *std::move(token);
  if (config.worker_store == WorkerStore::kTunnel && config.token.insecure) {
    return absl::InvalidArgumentError(
        "--worker-store=tunnel carries the workers' store over TLS, which --insecure (or "
        "MUSTER_INSECURE=1) goes without; drop one of them");
  }
  if (!config.http) return absl::OkStatus();
  const std::string objection = rendezvous::WhyNotOverHttp(*config.http, config.token);
  if (objection.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--http=", ToString(*config.http), " ", objection));
}

absl::Status CheckHang(const HangPolicy& hang) {
  const HangPolicy none{.stack_command = hang.stack_command};
  if (hang.timeout.count() > 0 || hang == none) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--hang-action, --liveness and --hang-first-beat-timeout configure hang detection, which is "
      "off; also give --hang-timeout=SECONDS");
}

// What nodes of a step have to end in, beyond the time to stop of their workers and of what these
// leave running.
constexpr std::chrono::seconds kEndLimit(15);

absl::StatusOr<SlurmStep> MakeSlurmStep(const RunFlags& flags, const std::vector<std::string>& args,
                                        Dialect dialect, const Environment& environment) {
  if (flags.operands.empty()) {
    return absl::InvalidArgumentError(
        "no script to run; write `muster run [flags] script [script args...]`");
  }
  if (flags.options.detach) {
    return absl::InvalidArgumentError(
        "--detach does not go with Slurm's allocation, which ends with its shell or script; "
        "`muster "
        "sbatch` starts a job that needs no terminal");
  }
  if (flags.options.token.fd >= 0) {
    return absl::InvalidArgumentError(
        "--token-fd names a descriptor of this machine, and Slurm starts the job on others; leave "
        "it out: a token is made for the job and passed on");
  }
  const auto token = rendezvous::CompleteTokenSource(
      flags.options.token, [&](const char* variable) { return GetOr(environment, variable, ""); });
  if (!token.ok()) return token.status();
  const auto grace = flags.options.shutdown_timeout;
  const bool needs_all = flags.options.min_nodes == flags.options.max_nodes;
  return SlurmStep{
      .nodes = flags.slurm_nodes,
      .dialect = dialect == Dialect::kLaunch ? "launch" : "run",
      .args = args,
      .environment = flags.exported,
      .makes_token =
          flags.slurm_nodes > 1 && !token->insecure && token->tls.empty() && token->file.empty(),
      .stop_signals = flags.options.stop_signals,
      .end_limit = grace == std::chrono::milliseconds::max() || !needs_all
                       ? std::chrono::seconds(0)
                       : 2 * std::chrono::ceil<std::chrono::seconds>(grace) + kEndLimit};
}

absl::StatusOr<LaunchConfig> MakeConfig(const RunFlags& flags, Dialect dialect,
                                        const Environment& environment, const Machine& machine) {
  LaunchConfig config{flags.options};
  absl::Status status = SetDevices(flags, environment, machine, config);
  if (status.ok()) {
    status = SetSizes(flags, BaseEnvironment(config, environment), machine, config);
  }
  if (status.ok()) status = CheckSharing(config, environment);
  if (status.ok()) status = ResolveRendezvous(flags, environment, config);
  if (status.ok()) status = SetToken(environment, config);
  if (status.ok()) status = CheckHang(config.hang);
  if (status.ok()) status = SetProgram(flags, flags.operands, dialect, environment, config);
  if (!status.ok()) return status;
  if (config.log_dir == kNoLogs && config.asks_for_logs()) {
    config.notes.push_back(
        absl::StrCat("--log-dir=", kNoLogs,
                     " keeps no logs: what --redirects and --tee would write to files stays on the "
                     "console, and filters have no file"));
  }
  if (const auto omp = DefaultOmpThreads(config.nproc_per_node, environment)) {
    config.notes.push_back(omp->note);
  }
  return config;
}

constexpr absl::string_view kRunAbout =
    R"(Joins the job's other nodes, starts this node's workers, and restarts what fails; with --hosts,
starts all of the job's nodes.
Flags end at the script: whatever follows it is the script's.
)";
constexpr absl::string_view kLaunchAbout =
    R"(The same as `muster run`, for scripts written for `python -m torch.distributed.launch`: they get
--local-rank=N before their own arguments.
Flags end at the script: whatever follows it is the script's.
)";

constexpr absl::string_view kRunEnd =
    R"(Flags may be written with underscores instead of dashes, may be abbreviated where that is
unambiguous, and may be set by environment variables: PET_NNODES for --nnodes, PET_STANDALONE=1 for
--standalone. What is about one launch has no variable: --detach, --dry-run, --print-config, --hosts
and the other flags for hosts.

Exit codes: 0 all workers succeeded, 1 a worker failed (see --exit-code), 2 the command line is
wrong, 3 the rendezvous failed, 4 this machine lacks what the run needs, 128+n ended by signal n.
)";

}  // namespace

base::Command RunRow(Dialect dialect) {
  const bool launch = dialect == Dialect::kLaunch;
  return {
      .name = launch ? "launch" : "run",
      .summary = launch ? "the same for scripts written for python -m torch.distributed.launch"
                        : "start this node's workers of a job; takes torchrun's command line.",
      .summary_more = launch ? "" : "With --hosts: start the job on every host, from here",
      .operands = "SCRIPT [ARGUMENT...]",
      .forms =
          "[flags] script [script args...]\n"
          "[flags] -m module [module args...]\n"
          "[flags] --no-python command [command args...]",
      .about = launch ? kLaunchAbout : kRunAbout,
      .end = kRunEnd,
      .hint =
          launch
              ? "`muster launch --help` lists the flags; the script's own flags go after the script"
              : "`muster run --help` lists the flags; the script's own flags go after the script",
      .order = base::Command::Order::kScript,
      .variable_prefix = "PET_",
      .flags = {RunFlagTable().begin(), RunFlagTable().end()}};
}

ParsedRun ParseRun(const std::vector<std::string>& args, Dialect dialect,
                   const Environment& environment, const Machine& machine) {
  const base::Command command = RunRow(dialect);
  RunFlags flags;
  absl::Status status = base::ReadCommandLine(
      command, args, [&](const std::string& name) { return GetOr(environment, name, ""); }, flags);
  if (!status.ok()) return UsageError{std::string(status.message())};
  if (flags.help) return TextRequest{base::HelpText(command)};
  if (flags.version) return TextRequest{absl::StrCat("muster ", base::kVersion, "\n")};
  if (flags.print_completion) return *flags.print_completion;
  status = FollowSlurm(environment, flags);
  if (!status.ok()) return UsageError{std::string(status.message())};
  const auto parsed = [](auto made) -> ParsedRun {
    if (!made.ok()) return UsageError{std::string(made.status().message())};
    return *std::move(made);
  };
  if (flags.slurm_nodes > 0) return parsed(MakeSlurmStep(flags, args, dialect, environment));
  if (AsksForHosts(flags)) return parsed(MakeHostsRun(flags, dialect, environment));
  return parsed(MakeConfig(flags, dialect, environment, machine));
}

}  // namespace muster::launcher
