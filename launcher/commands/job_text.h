// All that there is to show of one job, for people.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "rendezvous/core/snapshot.h"

namespace muster::launcher {

// The tables of job_view.h one after the other, but for those without rows, and its first failure,
// with times in `zone`. Lines, each with its end.
std::string JobText(const rendezvous::JobSnapshot& job, absl::TimeZone zone);

}  // namespace muster::launcher
