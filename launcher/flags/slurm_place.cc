#include "launcher/flags/slurm_place.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/hosts/host_ranges.h"

namespace muster::launcher {
namespace {

// Numbers from here on are steps that are none of srun's: the batch script (SLURM_BATCH_SCRIPT,
// 0xfffffffb), salloc's shell on a node (SLURM_INTERACTIVE_STEP, 0xfffffffa) and their like
// (slurm.h).
constexpr std::uint32_t kFirstOtherStep = 0xfffffff0;

absl::Status Nonsense(const char* variable, const std::string& value, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("Slurm says ", variable, "=", value, ", which ", why,
                   "; MUSTER_SLURM=0 has muster do without what Slurm says"));
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

}  // namespace

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

}  // namespace muster::launcher
