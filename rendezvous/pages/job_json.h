// A job as JSON: for `muster status --json` and for the daemon's HTTP.
#pragma once

#include <vector>

#include "base/json.h"
#include "rendezvous/core/values/snapshot.h"

namespace muster::rendezvous {

// The job, its rounds and its nodes, as docs/observing.md says. A missing rank is null; times are
// seconds. Bytes that are not UTF-8 become U+FFFD when it is printed.
base::Json ToJson(const JobSnapshot& job);

// All of them, as an array.
base::Json ToJson(const std::vector<JobSnapshot>& jobs);

}  // namespace muster::rendezvous
