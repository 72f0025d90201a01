#include "worker/tree/cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/tree/agent_mark.h"
#include "worker/tree/orphan_hunt.h"

namespace muster::worker {

std::optional<WorkerCgroup> WorkerCgroup::Create(const std::optional<CgroupPath>& own) {
  if (!own.has_value()) return std::nullopt;
  // To move a process, the kernel wants to see both groups' common ancestor writable.
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

void WorkerCgroup::Kill() const {
  const base::UniqueFd file(
      ::open(absl::StrCat(path_, "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return;
  [[maybe_unused]] const ssize_t written = ::write(file.get(), "1", 1);
}

}  // namespace muster::worker
