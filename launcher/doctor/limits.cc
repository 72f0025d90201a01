#include "launcher/doctor/machine.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "base/failure.h"
#include "base/unique_fd.h"
#include "launcher/machine/cpus.h"
#include "worker/process/process_info.h"
#include "worker/tree/cgroup.h"

namespace muster::launcher {
namespace {

// Each peer of NCCL, Gloo and the store takes one or more descriptors, each batch of a data loader
// one.
constexpr rlim_t kFewFiles = 4096;
constexpr rlim_t kTooFewFiles = 256;
// A worker has some 50 threads with CUDA and NCCL, and some more per data loader.
constexpr rlim_t kFewProcesses = 4096;
constexpr rlim_t kTooFewProcesses = 256;

std::string Number(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : absl::StrCat(limit);
}

void JudgeFiles(const rlimit& files, Report& report) {
  const std::string what = absl::StrCat("a process may have ", Number(files.rlim_cur),
                                        " files open, and raise that to ", Number(files.rlim_max));
  if (files.rlim_max >= kFewFiles && files.rlim_cur > kTooFewFiles) {
    report.fine.push_back({"limits", what});
    return;
  }
  report.Add(files.rlim_cur <= kTooFewFiles ? Severity::kError : Severity::kWarning, "limits",
             absl::StrCat(what, " (RLIMIT_NOFILE)."),
             "Connections to other ranks, and batches of data loaders, take a descriptor each: "
             "with many of them workers fail with \"Too many open files\".",
             "Raise it: nofile in /etc/security/limits.conf, LimitNOFILE= in a systemd unit, "
             "--ulimit nofile=65536:1048576 for docker.");
}

void JudgeProcesses(const Limits& limits, Report& report) {
  const rlim_t most = limits.processes.rlim_cur;
  if (most >= kFewProcesses || limits.is_root) return;
  report.Add(most <= kTooFewProcesses ? Severity::kError : Severity::kWarning, "limits",
             absl::StrCat("this user may have ", most, " processes and threads (RLIMIT_NPROC)."),
             "A worker has tens of threads for CUDA, NCCL and data loaders. At the limit nothing "
             "can be started: \"Resource temporarily unavailable\".",
             "Raise it: nproc in /etc/security/limits.conf, LimitNPROC= in a systemd unit, "
             "--ulimit nproc=-1 for docker.");
}

void JudgeLockedMemory(const Limits& limits, Report& report) {
  if (!limits.has_rdma || limits.is_root || limits.locked_memory.rlim_cur == RLIM_INFINITY) return;
  report.Add(Severity::kError, "limits",
             absl::StrCat("a process may lock ", Size(limits.locked_memory.rlim_cur),
                          " of memory (RLIMIT_MEMLOCK), and there is InfiniBand or RoCE."),
             "NCCL's buffers for remote direct memory access are locked: it fails with \"Call to "
             "ibv_reg_mr failed\" or \"ibv_create_qp failed\".",
             "Lift it: memlock unlimited in /etc/security/limits.conf, LimitMEMLOCK=infinity "
             "in the unit of sshd or of the scheduler, --ulimit memlock=-1 for docker.");
}

void JudgeSizes(const Limits& limits, Report& report) {
  if (limits.file_size.rlim_cur != RLIM_INFINITY) {
    report.Add(
        Severity::kWarning, "limits",
        absl::StrCat("a file may have ", Size(limits.file_size.rlim_cur), " (RLIMIT_FSIZE)."),
        "A worker that writes a larger checkpoint is killed by SIGXFSZ.",
        "Lift it: `ulimit -f unlimited`, or fsize in /etc/security/limits.conf.");
  }
  if (limits.address_space.rlim_cur != RLIM_INFINITY) {
    report.Add(Severity::kWarning, "limits",
               absl::StrCat("a process may have ", Size(limits.address_space.rlim_cur),
                            " of addresses (RLIMIT_AS)."),
               "CUDA reserves as many addresses as the machine and its GPUs have memory, and does "
               "not start without: \"out of memory\".",
               "Lift it: `ulimit -v unlimited`, or as in /etc/security/limits.conf.");
  }
}

}  // namespace

Limits ReadLimits() {
  Limits limits;
  ::getrlimit(RLIMIT_NOFILE, &limits.open_files);
  ::getrlimit(RLIMIT_NPROC, &limits.processes);
  ::getrlimit(RLIMIT_MEMLOCK, &limits.locked_memory);
  ::getrlimit(RLIMIT_FSIZE, &limits.file_size);
  ::getrlimit(RLIMIT_AS, &limits.address_space);
  limits.is_root = ::geteuid() == 0;
  std::error_code ignored;
  limits.has_rdma = std::filesystem::exists("/sys/class/infiniband", ignored) &&
                    !std::filesystem::is_empty("/sys/class/infiniband", ignored);
  return limits;
}

void Judge(const Limits& limits, Report& report) {
  JudgeFiles(limits.open_files, report);
  JudgeProcesses(limits, report);
  JudgeLockedMemory(limits, report);
  JudgeSizes(limits, report);
}

namespace {

constexpr std::uint64_t kLittleMemory = std::uint64_t{1} << 30;
constexpr std::uint64_t kFewPids = 1024;
constexpr std::uint64_t kTooFewPids = 128;
// Version 1 reports no limit as a huge number.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

// A number from a cgroup file; nullopt for "max" or a missing file.
std::optional<std::uint64_t> NumberIn(const std::string& directory, const char* file) {
  std::uint64_t number = 0;
  const std::string text = worker::ReadSmallFile(absl::StrCat(directory, "/", file));
  return absl::SimpleAtoi(text, &number) ? std::optional(number) : std::nullopt;
}

// Page cache that counts as used, but that the kernel can reclaim at any time.
std::uint64_t ReclaimableIn(const std::string& directory) {
  std::uint64_t sum = 0;
  const std::string stat = worker::ReadSmallFile(absl::StrCat(directory, "/memory.stat"));
  for (const absl::string_view line : absl::StrSplit(stat, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    std::uint64_t size = 0;
    if (words.size() == 2 && absl::EndsWith(words[0], "active_file") &&
        absl::SimpleAtoi(words[1], &size)) {
      // Version 1 has both "active_file" and "total_active_file", which includes groups below.
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

// Calls `read` with the directories of this process's group and its ancestors, in the unified
// hierarchy and in the controller's own.
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
      absl::StrCat(Size(*group.memory_max), " of memory, of which ", Size(left), " are left");
  if (left >= kLittleMemory) {
    report.fine.push_back({"control group", absl::StrCat("allows ", what)});
    return;
  }
  report.Add(Severity::kError, "control group",
             absl::StrCat("the control group of this process allows ", what,
                          " (memory.max, or memory.limit_in_bytes)."),
             "Above it the kernel kills workers, SIGKILL and no other word: a process that loads "
             "PyTorch takes some 500 MiB.",
             "Ask for more: --mem of Slurm, resources.limits.memory of Kubernetes, --memory of "
             "docker, MemoryMax= of a systemd unit.");
}

void JudgeCpus(const ControlGroup& group, Report& report) {
  if (!group.cpus || *group.cpus >= group.allowed_cpus) return;
  report.Add(
      *group.cpus < 1 ? Severity::kError : Severity::kWarning, "control group",
      absl::StrFormat("the control group allows the time of %.3g CPUs, while processes see %d.",
                      *group.cpus, group.allowed_cpus),
      "Programs start a thread for each CPU that they see. Together they use up the group's "
      "time, and then all of them stand still for the rest of a tenth of a second.",
      "Give it whole CPUs by cpuset instead of a quota, or set --nproc-per-node, "
      "OMP_NUM_THREADS and the number of data loaders by hand.");
}

void JudgePids(const ControlGroup& group, Report& report) {
  if (!group.pids_max) return;
  const std::uint64_t used = group.pids_used.value_or(0);
  const std::uint64_t left = *group.pids_max > used ? *group.pids_max - used : 0;
  if (left >= kFewPids) return;
  report.Add(left < kTooFewPids ? Severity::kError : Severity::kWarning, "control group",
             absl::StrCat("the control group allows ", *group.pids_max,
                          " processes and threads, of which ", left, " are left (pids.max)."),
             "A worker has tens of threads for CUDA, NCCL and data loaders. At the limit nothing "
             "can be started: \"Resource temporarily unavailable\".",
             "Raise it: --pids-limit of docker, podPidsLimit of the kubelet, TasksMax= of a "
             "systemd unit.");
}

void JudgeDelegation(const ControlGroup& group, Report& report) {
  if (group.is_delegated) {
    report.fine.push_back({"control group", "workers get a group of their own"});
    return;
  }
  report.Add(Severity::kNote, "control group",
             group.name.empty()
                 ? std::string("there is no control group (version 2) to see here.")
                 : absl::StrCat("no control group can be made below ", group.name, "."),
             "Muster then finds what workers leave behind by their environment and ancestry, which "
             "takes longer than to end a group at once.",
             "Nothing has to be done. For a group of its own: `systemd-run --user --scope -p "
             "Delegate=yes muster run ...`.");
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
  facts.cpus = CpuQuota();
  return facts;
}

void Judge(const ControlGroup& group, Report& report) {
  JudgeMemory(group, report);
  JudgeCpus(group, report);
  JudgePids(group, report);
  JudgeDelegation(group, report);
}

namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kTooLittleShared = 64 * kMiB;  // the default for containers
constexpr std::uint64_t kLittleShared = 1024 * kMiB;

constexpr char kWhyShared[] =
    "NCCL passes data between the GPUs of a machine through it, and PyTorch's data loaders their "
    "batches. Without room they fail with \"No space left on device\", or a worker is killed by "
    "SIGBUS.";
constexpr char kMoreShared[] =
    "Remove old files there, or make it larger: `mount -o remount,size=50% /dev/shm`; docker and "
    "podman: --shm-size=16g or --ipc=host; Kubernetes: an emptyDir of medium Memory at /dev/shm.";

}  // namespace

SharedMemory ReadSharedMemory(const std::string& path) {
  SharedMemory facts{.path = path};
  struct statvfs system = {};
  if (::statvfs(path.c_str(), &system) != 0) {
    facts.trouble = base::SystemCause();
    return facts;
  }
  facts.total = std::uint64_t{system.f_blocks} * system.f_frsize;
  facts.free = std::uint64_t{system.f_bavail} * system.f_frsize;
  const base::UniqueFd file(::open(path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid()) facts.trouble = base::SystemCause();
  return facts;
}

void Judge(const SharedMemory& facts, Report& report) {
  const std::string found =
      absl::StrCat(Size(facts.total), ", of which ", Size(facts.free), " are free");
  const auto add = [&](Severity severity, const std::string& what, const char* remedy) {
    report.Add(severity, "shared memory", what, kWhyShared, remedy);
  };
  if (!facts.trouble.empty()) {
    return add(Severity::kError,
               absl::StrCat("no file can be made in ", facts.path, ": ", facts.trouble, "."),
               "Mount a tmpfs there that every user can write to: `mount -t tmpfs -o mode=1777 "
               "none /dev/shm`.");
  }
  if (facts.free <= kTooLittleShared) {
    return add(Severity::kError, absl::StrCat(facts.path, " has ", found, "."), kMoreShared);
  }
  if (facts.free < kLittleShared) {
    return add(Severity::kWarning, absl::StrCat(facts.path, " has ", found, "."), kMoreShared);
  }
  report.fine.push_back({"shared memory", absl::StrCat(facts.path, " has ", found)});
}

}  // namespace muster::launcher
