// The key-value store of one job at its daemon, for tools: the calls of proto/store.proto.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/client/daemon_channel.h"

namespace muster::rendezvous {

// The largest value that proto/store.proto allows.
inline constexpr std::size_t kMaxStoredValueBytes = 1 << 20;

// One call at a time, on one thread, over one connection, which the first call opens. A call blocks
// until there is an answer, for `patience` at most; one that waits takes its own timeout, and
// survives restarts of the daemon, however many, that take no more than four seconds each.
//
// Errors, each one sentence: NotFound when the daemon has no such job; Unavailable, with the
// endpoint and the cause, when no Muster daemon answers there (a write may or may not have been
// done); Aborted when the job ended while the call waited; otherwise what the daemon says.
class StoreClient {
 public:
  // How long to wait; nullopt: as long as the job lives.
  using Timeout = std::optional<std::chrono::milliseconds>;

  StoreClient(DaemonOptions daemon, std::string run_id);
  ~StoreClient();

  // The value; nullopt when the key does not exist.
  absl::StatusOr<std::optional<std::string>> Get(const std::string& key);
  // Waits for the key to exist. DeadlineExceeded when it does not in time.
  absl::StatusOr<std::string> GetWhenThere(const std::string& key, Timeout timeout);

  absl::Status Set(const std::string& key, const std::string& value);
  // The sum. A missing key counts as 0. FailedPrecondition when the value is not a number,
  // OutOfRange when it or the sum does not fit.
  absl::StatusOr<std::int64_t> Add(const std::string& key, std::int64_t delta);
  absl::Status Append(const std::string& key, const std::string& suffix);

  struct CompareSetOutcome {
    bool stored = false;
    // The current value; nullopt when the key does not exist.
    std::optional<std::string> value;
  };
  // Writes `desired` if the value is `expected`; an empty `expected` also matches a missing key.
  absl::StatusOr<CompareSetOutcome> CompareSet(const std::string& key, const std::string& expected,
                                               const std::string& desired);

  // Whether the key existed.
  absl::StatusOr<bool> Delete(const std::string& key);
  // Whether all of them exist.
  absl::StatusOr<bool> Check(const std::vector<std::string>& keys);
  // Waits until each of them has existed. DeadlineExceeded when they do not in time.
  absl::Status Wait(const std::vector<std::string>& keys, Timeout timeout);
  absl::StatusOr<std::uint64_t> NumKeys();

  // Waits until `count` callers, at least 1, wait at the barrier `name` at once; then it can be
  // used again. Who gives up no longer counts. DeadlineExceeded when not enough come in time, with
  // the beginning of a sentence: "2 of 3 reached barrier 'b'"; the daemon has `patience` to say so,
  // or else Unavailable.
  // FailedPrecondition when those who wait there named another count.
  absl::Status Barrier(const std::string& name, std::uint64_t count, Timeout timeout);

 private:
  class Connection;

  const std::unique_ptr<Connection> connection_;
};

}  // namespace muster::rendezvous
