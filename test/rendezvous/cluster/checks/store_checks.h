// Whether a job's store is linearizable and keeps what it has acknowledged: for the few shapes of
// use that the simulated clients have, each with a rule that can be checked as it goes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/core/types.h"
#include "test/rendezvous/cluster/checks/violations.h"
#include "test/rendezvous/cluster/message.h"

namespace muster::rendezvous {

// The shapes, told apart by the first letter of the key. Numbers are the values' decimal text.
//   c  a counter: Add of 1 by anybody, never sent twice; every sum is given to one call
//   r  a register: Set by one client to growing numbers, sent again until it is acknowledged
//   n  a number that CompareSet moves on by one; each step succeeds for one call
//   a  a log: Append of "7;" by one client, growing numbers, never sent twice
// Real time orders calls: one that began after another had ended sees what that saw, or later.
class StoreChecks {
 public:
  explicit StoreChecks(Violations& violations) : violations_(violations) {}

  // A call begins; what it may see at least is fixed now.
  struct Call {
    StoreRequest request;
    std::map<Incarnation, std::int64_t> at_least;
  };
  Call Begin(const StoreRequest& request);
  // It has ended with an answer that says it was done. Calls that get none may have been done or
  // not.
  void End(const Call& call, const StoreReply& answer);

 private:
  struct KeyTruth {
    std::int64_t attempted = 0;  // the largest number that may be there; or how many were added
    // In each life of the job: the largest number that somebody has seen or been acknowledged, and
    // which sums and steps were given.
    std::map<Incarnation, std::int64_t> seen;
    std::set<std::pair<Incarnation, std::int64_t>> given;
    // Numbers of the log that were acknowledged in each life.
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
