// A control group (v2) of the workers' own, where we may have one: no process can leave it by
// setsid or by forking twice, and the kernel kills all of it in one step.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "worker/process/cgroup_paths.h"

namespace muster::worker {

// A directory below our own group. No controller is enabled in it: the workers' resources are
// counted and limited as if it did not exist. Lives with one WorkerGroup.
class WorkerCgroup {
 public:
  // Creates the group below `own`; nullopt where that is not possible: no v2 hierarchy, not
  // delegated to us, or a kernel without cgroup.kill (before 5.14).
  static std::optional<WorkerCgroup> Create(const std::optional<CgroupPath>& own);
  static std::optional<WorkerCgroup> Create() { return Create(FindOwnCgroup("")); }

  WorkerCgroup(WorkerCgroup&& other) noexcept;
  WorkerCgroup& operator=(WorkerCgroup&&) = delete;
  // Removes the group, if nothing is left in it.
  ~WorkerCgroup();

  const std::string& path() const { return path_; }
  // The directory, for processes that are to be in it (SpawnRequest::join_fd).
  int join_fd() const { return directory_.get(); }

  // Whether a live process is in it or below.
  bool IsPopulated() const;

  // SIGKILL to everything in it and below, at once.
  void Kill() const;

 private:
  WorkerCgroup(std::string path, base::UniqueFd directory)
      : path_(std::move(path)), directory_(std::move(directory)) {}

  // Empty when it was moved from.
  std::string path_;
  base::UniqueFd directory_;
};

}  // namespace muster::worker
