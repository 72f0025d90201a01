// Uses a job's store for as long as others do harm to its daemons, and says whether what it has
// seen can be explained by one store that never fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "test/linearizability/store_client.h"
#include "test/linearizability/store_history.h"

namespace muster::linearizability {

// From its making on, four clients call by chance (traffic.h), each on a thread and over a
// connection of its own, a few dozen calls a second in all: so slowly that minutes can be checked.
class Witness {
 public:
  // A prefix in `place` that no other witness has: the keys are taken to be new.
  Witness(StorePlace place, std::uint64_t seed);

  // So many calls have ended up to now.
  std::size_t calls();

  struct Finding {
    std::size_t calls = 0;
    std::size_t unknown = 0;  // writes whose clients were not told whether they were done
    // What is wrong, in one line; empty: the history is linearizable.
    std::string trouble;
  };
  // Once: ends the calls, reads every key, checks the history (checker.h) and deletes the keys.
  // Waits up to half a minute for a daemon that serves.
  Finding End();

 private:
  void Call(const std::stop_token& stop, int number);
  void Take(const absl::StatusOr<StoreOperation>& operation);

  const StorePlace place_;
  const std::uint64_t seed_;
  std::mutex mutex_;  // for the next two
  StoreHistory history_;
  std::set<std::string> refusals_;  // answers that a daemon that serves never gives
  std::vector<std::jthread> clients_;
};

}  // namespace muster::linearizability
