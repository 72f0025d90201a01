// What a watch of jobs sees at a time.
#pragma once

#include <vector>

#include "rendezvous/core/snapshot.h"

namespace muster::rendezvous {

struct WatchedJobs {
  // All there are, in order of run id; or the one that is watched, if it is there.
  std::vector<JobSnapshot> jobs;
  // What has ended since the update before.
  std::vector<JobEnd> ended;
  // Nothing has changed since then; only time has gone on.
  bool unchanged = false;
};

}  // namespace muster::rendezvous
