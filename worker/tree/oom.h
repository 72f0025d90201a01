// Whether the kernel's out-of-memory killer ended a worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "worker/process/cgroup_paths.h"

namespace muster::worker {

// Counts the kills in our memory control group, which is also the workers': the kernel keeps the
// number in memory.events (v2) or memory.oom_control (v1). Lives with one WorkerGroup; without a
// memory group it never finds anything.
class OomWatch {
 public:
  // Notes the count as it is now. `v2` and `v1` are our groups in the unified hierarchy and in v1's
  // memory hierarchy; whichever has a count is used.
  OomWatch(const std::optional<CgroupPath>& v2, const std::optional<CgroupPath>& v1);
  OomWatch() : OomWatch(FindOwnCgroup(""), FindOwnCgroup("memory")) {}

  // Whether there is a kill that has not explained a death yet. Each kill explains one death.
  bool ExplainsOneMore();

  // "by the kernel's out-of-memory killer (memory limit 512 MiB of cgroup /x)": the limit is that
  // of the nearest group that has one; "(the node's memory was used up)" if none has.
  std::string Describe() const;

 private:
  std::uint64_t Count() const;

  // The group whose count is read; nullopt when there is none.
  std::optional<CgroupPath> group_;
  bool is_v2_ = false;
  std::uint64_t explained_ = 0;
};

}  // namespace muster::worker
