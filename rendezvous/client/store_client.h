// The key-value store of one job at its daemon, for tools: proto/store.proto, call by call.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/client/daemon_options.h"

namespace muster::rendezvous {

// What proto/store.proto lets a value have.
inline constexpr std::size_t kMaxStoredValueBytes = 1 << 20;

// One call at a time, on one thread, over one connection, which is opened by the first. A call
// blocks until there is an answer, for `patience` at most; one that waits for keys goes on for its
// own timeout, and outlives the restart of a daemon that takes no more than a few seconds.
//
// Errors, each one sentence: NotFound when the daemon has no such job; Unavailable, with the
// endpoint and the cause, when no Muster daemon answers there (a write may then have been done, or
// not); Aborted when the job ended while the call waited; else what the daemon says.
class StoreClient {
 public:
  // How long to wait for keys; nothing: as long as the job lives.
  using Timeout = std::optional<std::chrono::milliseconds>;

  StoreClient(DaemonOptions daemon, std::string run_id);
  ~StoreClient();

  // The value; nothing when the key does not exist.
  absl::StatusOr<std::optional<std::string>> Get(const std::string& key);
  // Waits for the key to exist. DeadlineExceeded when it does not in time.
  absl::StatusOr<std::string> GetWhenThere(const std::string& key, Timeout timeout);

  absl::Status Set(const std::string& key, const std::string& value);
  // The sum. A key that does not exist counts as 0. FailedPrecondition when the value is no number.
  absl::StatusOr<std::int64_t> Add(const std::string& key, std::int64_t delta);
  absl::Status Append(const std::string& key, const std::string& suffix);

  struct CompareSetOutcome {
    bool stored = false;
    // What is there now; nothing when the key does not exist.
    std::optional<std::string> value;
  };
  // Writes `desired` if the value is `expected`; an empty one also stands for a key that does not
  // exist.
  absl::StatusOr<CompareSetOutcome> CompareSet(const std::string& key, const std::string& expected,
                                               const std::string& desired);

  // Whether the key existed.
  absl::StatusOr<bool> Delete(const std::string& key);
  // Whether all of them exist.
  absl::StatusOr<bool> Check(const std::vector<std::string>& keys);
  // Waits until each of them has existed. DeadlineExceeded when they do not in time.
  absl::Status Wait(const std::vector<std::string>& keys, Timeout timeout);
  absl::StatusOr<std::uint64_t> NumKeys();

 private:
  class Connection;

  const std::unique_ptr<Connection> connection_;
};

}  // namespace muster::rendezvous
