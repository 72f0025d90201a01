// What a daemon says about its jobs, for tools that ask once.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rendezvous/client/daemon_options.h"
#include "rendezvous/core/snapshot.h"

namespace muster::rendezvous {

// Both block until there is an answer, for `patience` at most. Errors, each one sentence: NotFound
// when the daemon has no such job; Unavailable, with the endpoint and the cause, when no Muster
// daemon answers there.

absl::StatusOr<JobSnapshot> DescribeJob(const DaemonOptions& daemon, const std::string& run_id);

// Every job, in order of run id.
absl::StatusOr<std::vector<JobSnapshot>> ListJobs(const DaemonOptions& daemon);

}  // namespace muster::rendezvous
