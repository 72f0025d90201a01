#include "launcher/doctor/shared_memory.h"

#include <fcntl.h>
#include <sys/statvfs.h>

#include "absl/strings/str_cat.h"
#include "base/failure.h"
#include "base/unique_fd.h"

namespace muster::launcher {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kTooLittleShared = 64 * kMiB;  // what containers get unless asked
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
  const std::string found = absl::StrCat(Size(static_cast<double>(facts.total)), ", of which ",
                                         Size(static_cast<double>(facts.free)), " are free");
  const auto add = [&](Severity severity, const std::string& what, const char* remedy) {
    report.findings.push_back({.severity = severity,
                               .subject = "shared memory",
                               .what = what,
                               .why = kWhyShared,
                               .remedy = remedy,
                               .hosts = {}});
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
