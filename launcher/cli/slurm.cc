#include "launcher/cli/slurm.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "launcher/machine/devices.h"
#include "launcher/remote/host_list.h"
#include "launcher/remote/link_command.h"

namespace muster::launcher {
namespace {

// Steps of the same hosts must not meet at one port. Below the ports that the kernel gives to
// whoever does not ask for one, and above those that services commonly have.
constexpr std::uint16_t kFirstPort = 20'000;
constexpr std::uint32_t kPorts = 10'000;

std::uint16_t PortOf(const std::string& name) {
  // FNV-1a.
  std::uint32_t hash = 2'166'136'261;
  for (const unsigned char c : name) hash = (hash ^ c) * 16'777'619;
  return static_cast<std::uint16_t>(kFirstPort + hash % kPorts);
}

// MIN:MAX says how many of Slurm's nodes the job needs, and leaves open where they meet.
bool IsRange(const RunFlags& flags) {
  return flags.nodes_given && flags.options.min_nodes < flags.options.max_nodes;
}

bool SaysWhereNodesMeet(const RunFlags& flags) {
  return (flags.nodes_given && !IsRange(flags)) || flags.standalone || flags.options.node_rank ||
         flags.master_port || !flags.rdzv_endpoint.empty() || !flags.master_addr.empty() ||
         !flags.rdzv_backend.empty() || !flags.hosts.empty() || !flags.hostfile.empty();
}

// What the user leaves of the GPUs that Slurm has given: a job's script may choose among them.
int VisibleOf(int gpus, const Environment& environment) {
  for (const char* const variable :
       {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) {
    const auto value = environment.find(variable);
    if (value == environment.end()) continue;
    const auto visible = VisibleDevices({{"CUDA_VISIBLE_DEVICES", value->second}}, {});
    gpus = std::min(gpus, static_cast<int>(visible.size()));
  }
  return gpus;
}

absl::Status FollowStep(const SlurmPlace& place, const Environment& environment, RunFlags& flags) {
  const std::size_t nodes = place.hosts.size();
  if (place.tasks_of_host > 1) {
    // Each of the processes runs a job of its own, which is how sweeps are started.
    if (nodes == 1) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "srun has started ", place.tasks_of_host,
        " processes on a node, and muster starts the workers of its node itself; write `srun "
        "--ntasks-per-node=1 muster run --nproc-per-node=",
        place.tasks_of_host, " ...`"));
  }
  const int gpus = place.gpus ? VisibleOf(*place.gpus, environment) : 0;
  if (gpus > 0 && !flags.nproc_given && !flags.total_workers) {
    flags.nproc_per_node = flags.devices.empty() ? absl::StrCat(gpus) : "gpu";
    flags.nproc_given = true;
  }
  const int count = static_cast<int>(nodes);
  if (!IsRange(flags)) {
    flags.options.min_nodes = flags.options.max_nodes = count;
  } else if (flags.options.min_nodes > count) {
    return absl::InvalidArgumentError(
        absl::StrCat("--nnodes=", flags.options.min_nodes, ":", flags.options.max_nodes,
                     " needs more nodes than the ", count, " of this step"));
  } else {
    // Nobody else can come.
    flags.options.max_nodes = std::min(flags.options.max_nodes, count);
  }
  if (nodes == 1) return absl::OkStatus();
  flags.nodes_given = true;
  flags.rdzv_endpoint = absl::StrCat(place.hosts.front(), ":", PortOf(place.name));
  if (flags.options.run_id.empty()) flags.options.run_id = place.name;
  flags.options.shows_shared_report = place.is_first_host;
  return absl::OkStatus();
}

// Numbers from here on are steps that are none of srun's: the batch script (SLURM_BATCH_SCRIPT,
// 0xfffffffb), salloc's shell on a node (SLURM_INTERACTIVE_STEP, 0xfffffffa) and their like
// (slurm.h).
constexpr std::uint32_t kFirstOtherStep = 0xfffffff0;

absl::Status Nonsense(const char* variable, const std::string& value, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("Slurm says ", variable, "=", value, ", which ",
                                                 why,
                                                 "; MUSTER_SLURM=0 makes muster ignore Slurm"));
}

absl::StatusOr<std::vector<std::string>> ExpandNodeList(absl::string_view text) {
  std::vector<std::string> hosts;
  for (const absl::string_view item : SplitHostItems(text)) {
    if (item.empty()) return absl::InvalidArgumentError("has a host without a name");
    const auto some = ExpandRanges(item);
    if (!some.ok()) return some.status();
    hosts.insert(hosts.end(), some->begin(), some->end());
  }
  return hosts;
}

// "2(x3),1": three hosts with two processes, one with one.
int MostTasks(const std::string& text) {
  int most = 1;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int tasks = 0;
    if (absl::SimpleAtoi(part.substr(0, part.find('(')), &tasks)) most = std::max(most, tasks);
  }
  return most;
}

// As sbatch reads its lines: double quotes hold a word together, a backslash stands before what
// would end them.
std::string SbatchQuoted(absl::string_view word) {
  constexpr absl::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=.,:/@%+[]*";
  if (!word.empty() && word.find_first_not_of(kPlain) == absl::string_view::npos) {
    return std::string(word);
  }
  std::string quoted = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

absl::Status FollowSlurm(const Environment& environment, RunFlags& flags) {
  if (SaysWhereNodesMeet(flags)) return absl::OkStatus();
  const auto place = FindSlurmPlace(environment);
  if (!place.ok()) return place.status();
  if (!place->has_value()) return absl::OkStatus();
  const SlurmPlace& slurm = **place;
  if (slurm.is_step) return FollowStep(slurm, environment, flags);
  const bool here = slurm.hosts.size() == 1 && slurm.is_on_host;
  // Those look at this machine.
  const bool looks = flags.options.purpose != Purpose::kRun;
  if (here || looks || flags.total_workers) return absl::OkStatus();
  if (flags.launch_with.empty()) {
    flags.slurm_nodes = static_cast<int>(slurm.hosts.size());
    return absl::OkStatus();
  }
  for (const std::string& host : slurm.hosts) {
    flags.hosts.push_back({.name = host, .workers = flags.nproc_given ? std::nullopt : slurm.gpus});
  }
  if (flags.options.run_id.empty()) flags.options.run_id = slurm.name;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<SlurmPlace>> FindSlurmPlace(const Environment& environment) {
  const std::string job = GetOr(environment, "SLURM_JOB_ID", "");
  if (job.empty() || GetOr(environment, "MUSTER_SLURM", "1") == "0") return std::nullopt;
  // Hosts of different kinds, which srun starts on as separate steps: what is meant is for the user
  // to say.
  if (!GetOr(environment, "SLURM_HET_SIZE", "").empty()) return std::nullopt;
  SlurmPlace place;
  std::uint32_t step = 0;
  const std::string step_text = GetOr(environment, "SLURM_STEP_ID", "");
  place.is_step = absl::SimpleAtoi(step_text, &step) && step < kFirstOtherStep;
  const char* const variable = place.is_step ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  const std::string list = GetOr(environment, variable, "");
  if (list.empty()) return std::nullopt;
  auto hosts = ExpandNodeList(list);
  if (!hosts.ok()) return Nonsense(variable, list, hosts.status().message());
  place.hosts = *std::move(hosts);
  place.is_on_host = !GetOr(environment, "SLURMD_NODENAME", "").empty();
  place.name = place.is_step ? absl::StrCat(job, ".", step) : job;
  if (const std::string restarts = GetOr(environment, "SLURM_RESTART_COUNT", "0");
      restarts != "0") {
    absl::StrAppend(&place.name, "-r", restarts);
  }
  int gpus = 0;
  if (absl::SimpleAtoi(GetOr(environment, "SLURM_GPUS_ON_NODE", ""), &gpus) && gpus > 0) {
    place.gpus = gpus;
  }
  if (place.is_step) {
    place.is_first_host = GetOr(environment, "SLURM_NODEID", "0") == "0";
    place.tasks_of_host = MostTasks(GetOr(environment, "SLURM_STEP_TASKS_PER_NODE", ""));
  }
  return place;
}

std::vector<std::string> SrunCommand(const SlurmStep& step, const std::string& program) {
  const std::string here = ShellQuoted(program);
  // Workers do not read what is meant for their agent: the token's line, by `read`, which takes no
  // byte beyond it, and then orders.
  const std::string script =
      absl::StrCat("exec ", kOrdersFd, "<&0 </dev/null; IFS= read -r token <&", kOrdersFd,
                   "\nexec 3<<END\n$token\nEND\ntest -x ", here, " && exec ", here,
                   " \"$@\"; command -v muster >/dev/null && exec muster \"$@\"; "
                   "echo \"there is no muster on $(hostname), neither in PATH nor as \"",
                   here, " >&2; exit 127");
  const std::string nodes = absl::StrCat(step.nodes);
  std::vector<std::string> argv = {
      "srun",
      "--quiet",
      // One Ctrl-C is passed on at once; srun would only say what runs.
      "--disable-status",
      "--overlap",
      "--nodes=" + nodes,
      "--ntasks=" + nodes,
      "--ntasks-per-node=1",
      // Nodes end one another, with time for their workers to save; the limit is for those who wait
      // in vain for a node whose agent was killed.
      "--kill-on-bad-exit=0",
      absl::StrCat("--wait=", step.end_limit.count()),
      "sh",
      "-c",
      script,
      "muster",
      step.dialect,
      "--prefix-lines",
  };
  if (step.makes_token) argv.push_back("--token-fd=3");
  argv.insert(argv.end(), step.args.begin(), step.args.end());
  return argv;
}

absl::StatusOr<std::string> BatchScript(const std::vector<std::string>& flags,
                                        const std::string& program,
                                        const std::vector<std::string>& run) {
  std::string script = "#!/bin/sh";
  for (const std::string& word : flags) {
    const bool is_flag = word.size() > 1 && word.front() == '-';
    if (&word == &flags.front() && !is_flag) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", word, "' is not one of sbatch's flags; put what to run after --"));
    }
    if (word.find('\n') != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a flag of sbatch's has a line break in it: ", word.substr(0, word.find('\n')),
          "...; sbatch reads a flag to the end of its line"));
    }
    // A value stays on the line of its flag.
    absl::StrAppend(&script, is_flag ? "\n#SBATCH " : " ", SbatchQuoted(word));
  }
  absl::StrAppend(&script, "\nexec srun --ntasks-per-node=1 ", ShellQuoted(program), " run");
  for (const std::string& word : run) absl::StrAppend(&script, " ", ShellQuoted(word));
  return script + "\n";
}

}  // namespace muster::launcher
