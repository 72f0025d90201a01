#include "rendezvous/core/job/job_history.h"

#include <utility>

namespace muster::rendezvous {

void JobHistory::Open(RoundNumber round, TimePoint now) {
  rounds_.push_back({.number = round, .opened = now});
  if (rounds_.size() > kMost) rounds_.pop_front();
}

RoundStarted JobHistory::Start(const std::vector<Placement>& members, TimePoint now) {
  Entry& round = rounds_.back();
  round.started = now;
  round.nodes = static_cast<int>(members.size());
  for (const Placement& member : members) round.workers += member.node.slots;
  return {.gathered = now - round.opened, .is_restart = std::exchange(any_started_, true)};
}

RoundOver JobHistory::End(RoundEnd why, std::string reason, RoundNumber next, TimePoint now) {
  Entry& round = rounds_.back();
  round.over = now;
  round.why = why;
  round.reason = std::move(reason);
  RoundOver over{.why = why, .ran = {}};
  if (round.started) over.ran = now - *round.started;
  Open(next, now);
  return over;
}

std::vector<RoundSnapshot> JobHistory::Describe(TimePoint now) const {
  std::vector<RoundSnapshot> rounds;
  for (const Entry& round : rounds_) {
    RoundSnapshot snapshot{.number = round.number,
                           .opened_ago = now - round.opened,
                           .nodes = round.nodes,
                           .workers = round.workers};
    if (round.started) {
      snapshot.gathered = *round.started - round.opened;
      snapshot.ran = round.over.value_or(now) - *round.started;
    }
    if (round.over) {
      snapshot.end = round.why;
      snapshot.reason = round.reason;
    }
    rounds.push_back(std::move(snapshot));
  }
  return rounds;
}

}  // namespace muster::rendezvous
