// Newcomers that ask for a rank which another node has, and wait until it is known whether that
// node is still there.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "absl/functional/function_ref.h"
#include "rendezvous/core/event.h"
#include "rendezvous/core/record.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// Part of a Coordinator, which owns it and acts on the outcome. A contest for an exact rank
// (JobSettings::exact_ranks) is open until the newcomer withdraws, until the holder no longer has
// the rank, or until the holder has given a sign of life. Not thread-safe.
class RankContests {
 public:
  // A contest that is over.
  struct Decided {
    AgentId newcomer = 0;
    JoinRequest request;
    // Who keeps the rank; nullopt: its holder is gone, and the newcomer may ask again.
    std::optional<AttendeeId> holder;
  };

  // Who has the rank that a request asks for; nullopt: nobody.
  using HolderOf = absl::FunctionRef<std::optional<AttendeeId>(const JoinRequest&)>;

  // `newcomer` waits for word from `holder`.
  void Open(AgentId newcomer, const JoinRequest& request, AttendeeId holder);
  // It no longer waits, if it did.
  void Withdraw(AgentId newcomer) { contests_.erase(newcomer); }

  // `holder` was heard. A beat may have been on its way for long, and its sender may be dead. Only
  // a beat sent after the answer to an earlier beat, which was heard during the contest, shows that
  // a holder is alive.
  void Witness(AttendeeId holder, const KeepAlive& beat);

  // Takes out the first contest that is over, in order of the newcomers' connections, beginning
  // after `last`.
  std::optional<Decided> TakeDecided(AgentId last, HolderOf holder_of);

 private:
  struct Contest {
    JoinRequest request;
    AttendeeId holder = 0;
    // The first beat of the holder that was answered during the contest.
    std::optional<std::int64_t> answered{};
    bool holder_lives = false;
  };

  std::map<AgentId, Contest> contests_;
};

}  // namespace muster::rendezvous
