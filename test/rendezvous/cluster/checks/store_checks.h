// Checks that a job's store is linearizable and keeps what it has acknowledged, for the few kinds
// of use by simulated clients, each with a rule that can be checked at run time.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/core/values/types.h"
#include "test/rendezvous/cluster/checks/violations.h"
#include "test/rendezvous/cluster/message.h"

namespace muster::rendezvous {

// The kinds of use, distinguished by the first letter of the key. Numbers are decimal text.
//   c  a counter: Add of 1 by any client, never resent; each sum is returned to one call
//   r  a register: Set by one client to increasing numbers, resent until acknowledged
//   n  a number that CompareSet increments by one; each step succeeds for one call
//   a  a log: Append of "7;" by one client, increasing numbers, never resent
// Calls are ordered by real time: one that began after another had ended sees what that one saw, or
// a later state.
class StoreChecks {
 public:
  explicit StoreChecks(Violations& violations) : violations_(violations) {}

  // A call begins. Records the least that it must see.
  struct Call {
    StoreRequest request;
    std::map<Incarnation, std::int64_t> at_least;
  };
  Call Begin(const StoreRequest& request);
  // A call has ended with an answer that it was done. Calls without an answer may have been done or
  // not.
  void End(const Call& call, const StoreReply& answer);

 private:
  struct KeyTruth {
    std::int64_t attempted = 0;  // the largest number that may be there, or the number of Adds
    // For each life of the job: the largest number that any client has seen or had acknowledged,
    // and the sums and steps already returned.
    std::map<Incarnation, std::int64_t> seen;
    std::set<std::pair<Incarnation, std::int64_t>> given;
    // The numbers in the log that were acknowledged in each life.
    std::map<Incarnation, std::vector<std::int64_t>> logged;
  };
  using Key = std::pair<std::string, std::string>;  // run id and key

  void Saw(const Call& call, const StoreReply& answer, std::int64_t number);
  void SawLog(const Call& call, const StoreReply& answer);
  void Fail(const Call& call, const StoreReply& answer, const std::string& what);

  Violations& violations_;
  std::map<Key, KeyTruth> keys_;
};

}  // namespace muster::rendezvous
