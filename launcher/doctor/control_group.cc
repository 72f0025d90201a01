#include "launcher/doctor/control_group.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "launcher/machine/cpu_list.h"
#include "worker/process/cgroup_paths.h"
#include "worker/tree/cgroup.h"

namespace muster::launcher {
namespace {

constexpr std::uint64_t kLittleMemory = std::uint64_t{1} << 30;
constexpr std::uint64_t kFewPids = 1024;
constexpr std::uint64_t kTooFewPids = 128;
// Version 1 writes a number where there is no limit.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

// A number of a control group's file; nullopt: "max", or there is no such file.
std::optional<std::uint64_t> NumberIn(const std::string& directory, const char* file) {
  std::uint64_t number = 0;
  const std::string text = worker::ReadSmallFile(absl::StrCat(directory, "/", file));
  return absl::SimpleAtoi(text, &number) ? std::optional(number) : std::nullopt;
}

// What the kernel can take back from the files' cache at any time, which counts as used.
std::uint64_t ReclaimableIn(const std::string& directory) {
  std::uint64_t sum = 0;
  const std::string stat = worker::ReadSmallFile(absl::StrCat(directory, "/memory.stat"));
  for (const absl::string_view line : absl::StrSplit(stat, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    std::uint64_t size = 0;
    if (words.size() == 2 && absl::EndsWith(words[0], "active_file") &&
        absl::SimpleAtoi(words[1], &size)) {
      // Version 1 has both "active_file" and, with the groups below, "total_active_file".
      if (absl::StartsWith(words[0], "total_") || !absl::StrContains(stat, "total_active_file")) {
        sum += size;
      }
    }
  }
  return sum;
}

void ReadMemory(const std::string& directory, const char* max, const char* used,
                ControlGroup& facts) {
  const auto limit = NumberIn(directory, max);
  if (!limit || *limit > kNoLimit || (facts.memory_max && *facts.memory_max <= *limit)) return;
  const std::uint64_t current = NumberIn(directory, used).value_or(0);
  facts.memory_max = limit;
  facts.memory_used = current - std::min(current, ReclaimableIn(directory));
}

void ReadPids(const std::string& directory, ControlGroup& facts) {
  const auto limit = NumberIn(directory, "pids.max");
  if (!limit || (facts.pids_max && *facts.pids_max <= *limit)) return;
  facts.pids_max = limit;
  facts.pids_used = NumberIn(directory, "pids.current");
}

// "150000 100000" of cpu.max is 1.5; version 1 has a file for each of the two.
void ReadCpus(const std::string& directory, ControlGroup& facts) {
  std::string text = worker::ReadSmallFile(absl::StrCat(directory, "/cpu.max"));
  if (text.empty()) {
    text = absl::StrCat(worker::ReadSmallFile(absl::StrCat(directory, "/cpu.cfs_quota_us")), " ",
                        worker::ReadSmallFile(absl::StrCat(directory, "/cpu.cfs_period_us")));
  }
  const std::vector<std::string> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  double quota = 0;
  double period = 0;
  if (words.size() != 2 || !absl::SimpleAtod(words[0], &quota) ||
      !absl::SimpleAtod(words[1], &period) || period <= 0 || quota <= 0) {
    return;
  }
  if (!facts.cpus || quota / period < *facts.cpus) facts.cpus = quota / period;
}

// Calls `read` with the directory of the group and of each above it, in the unified hierarchy and
// in the controller's own.
template <typename Read>
void ForEachGroup(const char* controller, Read read) {
  for (const char* const hierarchy : {"", controller}) {
    for (auto group = worker::FindOwnCgroup(hierarchy); group; group = group->Parent()) {
      read(group->directory);
    }
  }
}

void JudgeMemory(const ControlGroup& group, Report& report) {
  if (!group.memory_max) return;
  const std::uint64_t used = group.memory_used.value_or(0);
  const std::uint64_t left = *group.memory_max > used ? *group.memory_max - used : 0;
  const std::string what =
      absl::StrCat(Size(static_cast<double>(*group.memory_max)), " of memory, of which ",
                   Size(static_cast<double>(left)), " are left");
  if (left >= kLittleMemory) {
    report.fine.push_back({"control group", absl::StrCat("allows ", what)});
    return;
  }
  report.findings.push_back(
      {.severity = Severity::kError,
       .subject = "control group",
       .what = absl::StrCat("the control group of this process allows ", what,
                            " (memory.max, or memory.limit_in_bytes)."),
       .why = "Above it the kernel kills workers, SIGKILL and no other word: a process that loads "
              "PyTorch takes some 500 MiB.",
       .remedy = "Ask for more: --mem of Slurm, resources.limits.memory of Kubernetes, --memory of "
                 "docker, MemoryMax= of a systemd unit.",
       .hosts = {}});
}

void JudgeCpus(const ControlGroup& group, Report& report) {
  if (!group.cpus || *group.cpus >= group.allowed_cpus) return;
  report.findings.push_back(
      {.severity = *group.cpus < 1 ? Severity::kError : Severity::kWarning,
       .subject = "control group",
       .what = absl::StrFormat(
           "the control group allows the time of %.3g CPUs, while processes see %d.", *group.cpus,
           group.allowed_cpus),
       .why =
           "Programs start a thread for each CPU that they see. Together they use up the group's "
           "time, and then all of them stand still for the rest of a tenth of a second.",
       .remedy = "Give it whole CPUs by cpuset instead of a quota, or set --nproc-per-node, "
                 "OMP_NUM_THREADS and the number of data loaders by hand.",
       .hosts = {}});
}

void JudgePids(const ControlGroup& group, Report& report) {
  if (!group.pids_max) return;
  const std::uint64_t used = group.pids_used.value_or(0);
  const std::uint64_t left = *group.pids_max > used ? *group.pids_max - used : 0;
  if (left >= kFewPids) return;
  report.findings.push_back(
      {.severity = left < kTooFewPids ? Severity::kError : Severity::kWarning,
       .subject = "control group",
       .what = absl::StrCat("the control group allows ", *group.pids_max,
                            " processes and threads, of which ", left, " are left (pids.max)."),
       .why = "A worker has tens of threads for CUDA, NCCL and data loaders. At the limit nothing "
              "can be started: \"Resource temporarily unavailable\".",
       .remedy = "Raise it: --pids-limit of docker, podPidsLimit of the kubelet, TasksMax= of a "
                 "systemd unit.",
       .hosts = {}});
}

void JudgeDelegation(const ControlGroup& group, Report& report) {
  if (group.is_delegated) {
    report.fine.push_back({"control group", "workers get a group of their own"});
    return;
  }
  report.findings.push_back(
      {.severity = Severity::kNote,
       .subject = "control group",
       .what = group.name.empty()
                   ? std::string("there is no control group (version 2) to see here.")
                   : absl::StrCat("no control group can be made below ", group.name, "."),
       .why =
           "Muster then finds what workers leave behind by their environment and ancestry, which "
           "takes longer than to end a group at once.",
       .remedy = "Nothing has to be done. For a group of its own: `systemd-run --user --scope -p "
                 "Delegate=yes muster run ...`.",
       .hosts = {}});
}

}  // namespace

ControlGroup ReadControlGroup() {
  ControlGroup facts{.allowed_cpus = static_cast<int>(AllowedCpus().size())};
  const auto own = worker::FindOwnCgroup("");
  if (own) facts.name = own->Name();
  facts.is_delegated = worker::WorkerCgroup::Create(own).has_value();
  ForEachGroup("memory", [&](const std::string& directory) {
    ReadMemory(directory, "memory.max", "memory.current", facts);
    ReadMemory(directory, "memory.limit_in_bytes", "memory.usage_in_bytes", facts);
  });
  ForEachGroup("pids", [&](const std::string& directory) { ReadPids(directory, facts); });
  ForEachGroup("cpu", [&](const std::string& directory) { ReadCpus(directory, facts); });
  return facts;
}

void Judge(const ControlGroup& group, Report& report) {
  JudgeMemory(group, report);
  JudgeCpus(group, report);
  JudgePids(group, report);
  JudgeDelegation(group, report);
}

}  // namespace muster::launcher
