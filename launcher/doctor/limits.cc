#include "launcher/doctor/limits.h"

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace muster::launcher {
namespace {

// Each peer of NCCL, Gloo and the store takes a descriptor or several, each batch of a loader one.
constexpr rlim_t kFewFiles = 4096;
constexpr rlim_t kTooFewFiles = 256;
// A worker has some 50 threads with CUDA and NCCL, and some for each loader.
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
  report.findings.push_back(
      {.severity = files.rlim_cur <= kTooFewFiles ? Severity::kError : Severity::kWarning,
       .subject = "limits",
       .what = absl::StrCat(what, " (RLIMIT_NOFILE)."),
       .why = "Connections to other ranks, and batches of data loaders, take a descriptor each: "
              "with many of them workers fail with \"Too many open files\".",
       .remedy = "Raise it: nofile in /etc/security/limits.conf, LimitNOFILE= in a systemd unit, "
                 "--ulimit nofile=65536:1048576 for docker.",
       .hosts = {}});
}

void JudgeProcesses(const Limits& limits, Report& report) {
  const rlim_t most = limits.processes.rlim_cur;
  if (most >= kFewProcesses || limits.is_root) return;
  report.findings.push_back(
      {.severity = most <= kTooFewProcesses ? Severity::kError : Severity::kWarning,
       .subject = "limits",
       .what = absl::StrCat("this user may have ", most, " processes and threads (RLIMIT_NPROC)."),
       .why = "A worker has tens of threads for CUDA, NCCL and data loaders. At the limit nothing "
              "can be started: \"Resource temporarily unavailable\".",
       .remedy = "Raise it: nproc in /etc/security/limits.conf, LimitNPROC= in a systemd unit, "
                 "--ulimit nproc=-1 for docker.",
       .hosts = {}});
}

void JudgeLockedMemory(const Limits& limits, Report& report) {
  if (!limits.has_rdma || limits.is_root || limits.locked_memory.rlim_cur == RLIM_INFINITY) return;
  report.findings.push_back(
      {.severity = Severity::kError,
       .subject = "limits",
       .what = absl::StrCat("a process may lock ",
                            Size(static_cast<double>(limits.locked_memory.rlim_cur)),
                            " of memory (RLIMIT_MEMLOCK), and there is InfiniBand or RoCE."),
       .why = "NCCL's buffers for remote direct memory access are locked: it fails with \"Call to "
              "ibv_reg_mr failed\" or \"ibv_create_qp failed\".",
       .remedy = "Lift it: memlock unlimited in /etc/security/limits.conf, LimitMEMLOCK=infinity "
                 "in the unit of sshd or of the scheduler, --ulimit memlock=-1 for docker.",
       .hosts = {}});
}

void JudgeSizes(const Limits& limits, Report& report) {
  if (limits.file_size.rlim_cur != RLIM_INFINITY) {
    report.findings.push_back(
        {.severity = Severity::kWarning,
         .subject = "limits",
         .what =
             absl::StrCat("a file may have ", Size(static_cast<double>(limits.file_size.rlim_cur)),
                          " (RLIMIT_FSIZE)."),
         .why = "A worker that writes a larger checkpoint is killed by SIGXFSZ.",
         .remedy = "Lift it: `ulimit -f unlimited`, or fsize in /etc/security/limits.conf.",
         .hosts = {}});
  }
  if (limits.address_space.rlim_cur != RLIM_INFINITY) {
    report.findings.push_back(
        {.severity = Severity::kWarning,
         .subject = "limits",
         .what = absl::StrCat("a process may have ",
                              Size(static_cast<double>(limits.address_space.rlim_cur)),
                              " of addresses (RLIMIT_AS)."),
         .why = "CUDA reserves as many addresses as the machine and its GPUs have memory, and does "
                "not start without: \"out of memory\".",
         .remedy = "Lift it: `ulimit -v unlimited`, or as in /etc/security/limits.conf.",
         .hosts = {}});
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

}  // namespace muster::launcher
