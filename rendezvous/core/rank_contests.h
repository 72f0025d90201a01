// Newcomers that ask for a rank which another node has, and wait until it is known whether that one
// is still there.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "absl/functional/function_ref.h"
#include "rendezvous/core/event.h"
#include "rendezvous/core/record.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// Part of a Coordinator, which owns it and acts on what is decided. A contest of exact ranks
// (JobSettings::exact_ranks) is open until the newcomer withdraws, until the rank is not the
// holder's any more, or until a sign of life of the holder has come in. Not thread-safe.
class RankContests {
 public:
  // One that is over.
  struct Decided {
    AgentId newcomer = 0;
    JoinRequest request;
    // Who keeps the rank; nothing: the one that had it is gone, and the newcomer may ask again.
    std::optional<AttendeeId> holder;
  };

  // Who has the rank that a request asks for; nothing: nobody has.
  using HolderOf = absl::FunctionRef<std::optional<AttendeeId>(const JoinRequest&)>;

  // `newcomer` waits for word of `holder`.
  void Open(AgentId newcomer, const JoinRequest& request, AttendeeId holder);
  // It waits no longer, if it did.
  void Withdraw(AgentId newcomer) { contests_.erase(newcomer); }

  // `holder` was heard. A beat may have been long on its way, and its sender be dead: only one that
  // was sent after the answer to an earlier one, heard in the contest, shows that a holder lives.
  void Witness(AttendeeId holder, const KeepAlive& beat);

  // Takes out the first contest that is over, in order of the newcomers' connections, from the one
  // after `last` on.
  std::optional<Decided> TakeDecided(AgentId last, HolderOf holder_of);

 private:
  struct Contest {
    JoinRequest request;
    AttendeeId holder = 0;
    // The first beat of the holder that was answered in the contest.
    std::optional<std::int64_t> answered{};
    bool holder_lives = false;
  };

  std::map<AgentId, Contest> contests_;
};

}  // namespace muster::rendezvous
