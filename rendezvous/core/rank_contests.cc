#include "rendezvous/core/rank_contests.h"

#include <utility>

namespace muster::rendezvous {

void RankContests::Open(AgentId newcomer, const JoinRequest& request, AttendeeId holder) {
  contests_[newcomer] = {request, holder};
}

void RankContests::Witness(AttendeeId holder, const KeepAlive& beat) {
  for (auto& [newcomer, contest] : contests_) {
    if (contest.holder != holder) continue;
    if (!contest.answered) {
      contest.answered = beat.number;
    } else if (beat.heard >= *contest.answered) {
      contest.holder_lives = true;
    }
  }
}

std::optional<RankContests::Decided> RankContests::TakeDecided(AgentId last, HolderOf holder_of) {
  for (auto at = contests_.upper_bound(last); at != contests_.end(); ++at) {
    auto& [newcomer, contest] = *at;
    const bool stands = holder_of(contest.request) == contest.holder;
    if (stands && !contest.holder_lives) continue;
    Decided decided{newcomer, std::move(contest.request)};
    if (stands) decided.holder = contest.holder;
    contests_.erase(at);
    return decided;
  }
  return std::nullopt;
}

}  // namespace muster::rendezvous
