// A control group (v2) for the workers, where permitted: processes cannot leave it by setsid or
// double forks, and the kernel kills all of it in one step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "worker/process/process_info.h"

namespace muster::worker {

// A directory below our own group. No controller is enabled in it, so that resources are accounted
// and limited as if it did not exist. Lives with one WorkerGroup.
class WorkerCgroup {
 public:
  // Creates the group below `own`; nullopt if that is not possible: no v2 hierarchy, not delegated
  // to us, or a kernel without cgroup.kill (before 5.14).
  static std::optional<WorkerCgroup> Create(const std::optional<CgroupPath>& own);
  static std::optional<WorkerCgroup> Create() { return Create(FindOwnCgroup("")); }

  WorkerCgroup(WorkerCgroup&& other) noexcept;
  WorkerCgroup& operator=(WorkerCgroup&&) = delete;
  // Removes the group if it is empty.
  ~WorkerCgroup();

  const std::string& path() const { return path_; }
  // The directory, for processes that are to join (SpawnRequest::join_fd).
  int join_fd() const { return directory_.get(); }

  // Whether it or a group below contains a live process.
  bool IsPopulated() const;

  // Moves its processes up into our own group, so that they outlive this object.
  void Release() const;

  // SIGKILL to everything in it and below, at once.
  void Kill() const;

 private:
  WorkerCgroup(std::string path, base::UniqueFd directory)
      : path_(std::move(path)), directory_(std::move(directory)) {}

  // Empty if moved from.
  std::string path_;
  base::UniqueFd directory_;
};

// Whether the kernel's out-of-memory killer killed a worker.

// Counts OOM kills in our memory control group, which the workers share: memory.events (v2) or
// memory.oom_control (v1). Lives with one WorkerGroup; without a memory group it never reports a
// kill.
class OomWatch {
 public:
  // Records the current count. `v2` and `v1` are our groups in the unified and in v1's memory
  // hierarchy; the one that has a count is used.
  OomWatch(const std::optional<CgroupPath>& v2, const std::optional<CgroupPath>& v1);
  OomWatch() : OomWatch(FindOwnCgroup(""), FindOwnCgroup("memory")) {}

  // Whether there is a kill that has not explained a death yet; consumes it.
  bool ExplainsOneMore();

  // "by the kernel's out-of-memory killer (memory limit 512 MiB of cgroup /x)", with the limit of
  // the nearest group that has one; "(the node's memory was used up)" if none has.
  std::string Describe() const;

 private:
  std::uint64_t Count() const;

  // The group whose count is read; nullopt if there is none.
  std::optional<CgroupPath> group_;
  bool is_v2_ = false;
  std::uint64_t explained_ = 0;
};

}  // namespace muster::worker
