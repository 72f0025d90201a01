// Where to reach a daemon for a single query, and how long it may take.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"

namespace muster::rendezvous {

struct DaemonOptions {
  Endpoint endpoint;
  Credentials credentials = Credentials::Plaintext();
  // For each answer, the connection included.
  std::chrono::milliseconds patience = std::chrono::seconds(10);
};

// What a daemon says about its jobs, for tools that ask once.

// All block until there is an answer, for `patience` at most. Errors, each one sentence: NotFound
// when the daemon has no such job; Unavailable, with the endpoint and the cause, when no Muster
// daemon answers there.

absl::StatusOr<JobSnapshot> DescribeJob(const DaemonOptions& daemon, const std::string& run_id);

// Every job, in order of run id.
absl::StatusOr<std::vector<JobSnapshot>> ListJobs(const DaemonOptions& daemon);

// The clock of the daemon's machine, against this one's.
struct ClockReading {
  // By how much the daemon's is ahead, taken to have been read half way between question and
  // answer.
  std::chrono::milliseconds ahead{0};
  // By how much that may be wrong, either way.
  std::chrono::milliseconds uncertainty{0};
};

// nullopt: the daemon answers, and is of a version that does not tell.
absl::StatusOr<std::optional<ClockReading>> ReadDaemonClock(const DaemonOptions& daemon);

}  // namespace muster::rendezvous
