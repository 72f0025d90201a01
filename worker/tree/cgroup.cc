#include "worker/tree/cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "worker/tree/orphan_hunt.h"

namespace muster::worker {
namespace {

constexpr int kReleasePasses = 16;

}  // namespace

std::optional<WorkerCgroup> WorkerCgroup::Create(const std::optional<CgroupPath>& own) {
  if (!own.has_value()) return std::nullopt;
  // Moving a process requires write access to the common ancestor of both groups.
  if (::access(absl::StrCat(own->directory, "/cgroup.procs").c_str(), W_OK) != 0) {
    return std::nullopt;
  }
  static int made = 0;
  std::string path = absl::StrCat(own->directory, "/muster-", AgentMark(), "-", ++made);
  if (::mkdir(path.c_str(), 0755) != 0) return std::nullopt;
  base::UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  WorkerCgroup group(std::move(path), std::move(directory));
  if (!group.directory_.valid() || ::faccessat(group.join_fd(), "cgroup.kill", W_OK, 0) != 0) {
    return std::nullopt;
  }
  return group;
}

WorkerCgroup::WorkerCgroup(WorkerCgroup&& other) noexcept
    : path_(std::exchange(other.path_, {})), directory_(std::move(other.directory_)) {}

WorkerCgroup::~WorkerCgroup() {
  if (path_.empty()) return;
  directory_.reset();
  RemoveCgroupTree(path_.c_str());
}

bool WorkerCgroup::IsPopulated() const {
  return absl::StrContains(ReadSmallFile(absl::StrCat(path_, "/cgroup.events")), "populated 1");
}

void WorkerCgroup::Release() const {
  const std::string above = absl::StrCat(path_.substr(0, path_.rfind('/')), "/cgroup.procs");
  // The next pass finds processes started meanwhile.
  for (int pass = 0; pass < kReleasePasses && IsPopulated(); ++pass) {
    std::istringstream members(ReadSmallFile(absl::StrCat(path_, "/cgroup.procs")));
    for (std::string pid; members >> pid;) std::ofstream(above) << pid;
  }
}

void WorkerCgroup::Kill() const {
  const base::UniqueFd file(
      ::open(absl::StrCat(path_, "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return;
  [[maybe_unused]] const ssize_t written = ::write(file.get(), "1", 1);
}

namespace {

// Version 1 reports no limit as a number larger than any memory.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

// The number after "oom_kill " in memory.events or memory.oom_control; nullopt if the file or the
// entry (old kernels) is missing.
std::optional<std::uint64_t> CountIn(const std::string& path) {
  const std::string text = ReadSmallFile(path);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> entry =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    std::uint64_t count = 0;
    if (entry.first == "oom_kill" && absl::SimpleAtoi(entry.second, &count)) return count;
  }
  return std::nullopt;
}

// The group's files have different names in the two versions.
std::string CountFile(const CgroupPath& group, bool is_v2) {
  return group.directory + (is_v2 ? "/memory.events" : "/memory.oom_control");
}

std::optional<std::uint64_t> LimitOf(const CgroupPath& group, bool is_v2) {
  const std::string text =
      ReadSmallFile(group.directory + (is_v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  std::uint64_t bytes = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &bytes) || bytes >= kNoLimit) {
    return std::nullopt;
  }
  return bytes;
}

std::string Size(std::uint64_t bytes) {
  constexpr std::uint64_t kMiB = 1024 * 1024;
  if (bytes % (1024 * kMiB) == 0) return absl::StrCat(bytes / (1024 * kMiB), " GiB");
  if (bytes >= kMiB) return absl::StrCat(bytes / kMiB, " MiB");
  return absl::StrCat(bytes / 1024, " KiB");
}

}  // namespace

OomWatch::OomWatch(const std::optional<CgroupPath>& v2, const std::optional<CgroupPath>& v1) {
  // The memory controller belongs to one version at a time. In version 2 it may be enabled only in
  // a parent.
  for (std::optional<CgroupPath> group = v2; group.has_value(); group = group->Parent()) {
    if (!CountIn(CountFile(*group, true)).has_value()) continue;
    group_ = group;
    is_v2_ = true;
    break;
  }
  if (!group_.has_value() && v1.has_value() && CountIn(CountFile(*v1, false)).has_value()) {
    group_ = v1;
  }
  explained_ = Count();
}

bool OomWatch::ExplainsOneMore() {
  if (Count() <= explained_) return false;
  ++explained_;
  return true;
}

std::string OomWatch::Describe() const {
  for (std::optional<CgroupPath> group = group_; group.has_value(); group = group->Parent()) {
    if (const std::optional<std::uint64_t> limit = LimitOf(*group, is_v2_)) {
      return absl::StrCat("by the kernel's out-of-memory killer (memory limit ", Size(*limit),
                          " of cgroup ", group->Name(), ")");
    }
  }
  return "by the kernel's out-of-memory killer (the node's memory was used up)";
}

std::uint64_t OomWatch::Count() const {
  return group_.has_value() ? CountIn(CountFile(*group_, is_v2_)).value_or(0) : 0;
}

}  // namespace muster::worker
