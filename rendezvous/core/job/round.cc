#include "rendezvous/core/job/round.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "base/check.h"
#include "base/text.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::rendezvous {
namespace {

auto FindNode(const std::vector<SharedNode>& nodes, std::string_view node_id) {
  return std::find_if(nodes.begin(), nodes.end(),
                      [node_id](const SharedNode& node) { return node->node_id == node_id; });
}

KeyMap<int> RanksOf(const std::vector<Round::Returning>& nodes) {
  KeyMap<int> ranks;
  ranks.reserve(nodes.size());
  for (const Round::Returning& node : nodes) ranks[node.node_id] = node.group_rank;
  return ranks;
}

// "a, b, c and 9,997 more": `name` of each item. Names no more than are shown elsewhere.
template <typename Items, typename Name>
std::string ShortListOf(const Items& items, const Name& name) {
  std::vector<std::string> first;
  for (const auto& item : items) {
    if (first.size() > base::kShown) break;
    first.push_back(name(item));
  }
  return base::ShortList(first, items.size());
}

}  // namespace

Round::Round(RoundNumber number, const JobSettings& settings,
             const std::vector<Returning>& returning, TimePoint opened, TimePoint earliest)
    : number_(number),
      settings_(settings),
      gives_up_(std::max(opened, earliest) + settings.join_timeout),
      earliest_(earliest),
      previous_ranks_(RanksOf(returning)),
      held_(earliest > opened) {
  MUSTER_CHECK(settings_.min_nodes >= 1 && settings_.min_nodes <= settings_.max_nodes);
  joined_.reserve(returning.size());
  WaitFor(returning);
}

Round::Round(const RoundRecord& record, const JobSettings& settings, TimePoint now)
    : number_(record.number),
      settings_(settings),
      gives_up_(now + record.gives_up_in),
      earliest_(record.held_for ? now + *record.held_for : TimePoint::min()),
      previous_ranks_(record.previous_ranks),
      state_(record.complete ? State::kComplete : State::kGathering),
      anyone_returned_(record.anyone_returned),
      spares_(record.spares),
      held_(record.held_for.has_value()),
      members_(record.members) {
  WaitFor(record.outstanding);
  if (state_ == State::kComplete) {
    for (const Placement& member : members_) joined_ids_.insert(member.node->node_id);
  } else {
    for (const SharedNode& node : record.joined) Admit(node);
  }
  if (record.last_call_in) last_call_ends_ = now + *record.last_call_in;
}

RoundRecord Round::Record(TimePoint now) const {
  RoundRecord record;
  record.number = number_;
  record.complete = state_ == State::kComplete;
  record.anyone_returned = anyone_returned_;
  record.previous_ranks = previous_ranks_;
  record.outstanding.reserve(outstanding_.size());
  for (const auto& [number, node] : outstanding_) record.outstanding.push_back(node);
  record.joined.reserve(joined_.size());
  for (const Candidate& candidate : joined_) record.joined.push_back(candidate.node);
  record.spares = spares_;
  record.members = members_;
  record.gives_up_in = gives_up_ - now;
  if (last_call_ends_) record.last_call_in = *last_call_ends_ - now;
  if (held_) record.held_for = earliest_ - now;
  return record;
}

Round::JoinOutcome Round::Join(const SharedNode& node, TimePoint now) {
  const bool is_spare = FindNode(spares_, node->node_id) != spares_.end();
  if (is_spare || joined_ids_.contains(node->node_id)) return JoinOutcome::kAgain;
  if (state_ == State::kTimedOut) return JoinOutcome::kTooLate;
  if (state_ == State::kComplete) {
    if (static_cast<int>(members_.size()) < settings_.max_nodes) return JoinOutcome::kTooLate;
    spares_.push_back(node);
    return JoinOutcome::kSpare;
  }

  if (StopWaitingFor(node->node_id, now)) {
    anyone_returned_ = true;
  } else if (FreePlaces() == 0) {
    spares_.push_back(node);
    return JoinOutcome::kSpare;
  }
  Admit(node);
  Settle(now);
  return JoinOutcome::kMember;
}

void Round::Leave(std::string_view node_id, TimePoint now) {
  if (const auto spare = FindNode(spares_, node_id); spare != spares_.end()) spares_.erase(spare);
  const bool was_in = joined_ids_.erase(node_id) != 0;
  if (state_ != State::kGathering) return;
  if (was_in) {
    std::erase_if(joined_,
                  [node_id](const Candidate& joined) { return joined.node->node_id == node_id; });
  }
  StopWaitingFor(node_id, now);
  PromoteSpares();
  Settle(now);
}

void Round::HoldUntil(TimePoint earliest, TimePoint now) {
  if (state_ != State::kGathering || earliest <= std::max(now, earliest_)) return;
  gives_up_ = std::max(gives_up_, earliest + settings_.join_timeout);
  earliest_ = earliest;
  held_ = true;
}

void Round::Delay(Duration deaf) {
  gives_up_ += deaf;
  if (held_) earliest_ += deaf;
  if (last_call_ends_) *last_call_ends_ += deaf;
}

void Round::Tick(TimePoint now) {
  if (state_ != State::kGathering) return;
  if (held_ && now >= earliest_) {
    held_ = false;
    Settle(now);
  }
  if (state_ != State::kGathering || held_ || !outstanding_.empty()) return;
  const bool enough = static_cast<int>(joined_.size()) >= settings_.min_nodes;
  if (enough && last_call_ends_ && now >= std::min(*last_call_ends_, gives_up_)) {
    Complete();
  } else if (!enough && now >= gives_up_) {
    state_ = State::kTimedOut;
  }
}

std::optional<TimePoint> Round::NextDeadline() const {
  if (state_ != State::kGathering) return std::nullopt;
  if (held_) return earliest_;
  if (!outstanding_.empty()) return std::nullopt;
  return last_call_ends_ ? std::min(*last_call_ends_, gives_up_) : gives_up_;
}

void Round::WaitFor(const std::vector<Returning>& nodes) {
  outstanding_ids_.reserve(nodes.size());
  for (const Returning& node : nodes) {
    const std::size_t number = outstanding_.size();
    outstanding_.emplace_hint(outstanding_.end(), number, node);
    outstanding_ids_.emplace(node.node_id, number);
  }
}

bool Round::StopWaitingFor(std::string_view node_id, TimePoint now) {
  const auto found = outstanding_ids_.find(node_id);
  if (found == outstanding_ids_.end()) return false;
  outstanding_.erase(found->second);
  outstanding_ids_.erase(found);
  MUSTER_CHECK(outstanding_.size() == outstanding_ids_.size());
  // The time that the last round's workers took to end is nobody's fault who is to join this one.
  if (outstanding_.empty()) gives_up_ = std::max(gives_up_, now + settings_.join_timeout);
  return true;
}

int Round::FreePlaces() const {
  return std::max<int>(0, settings_.max_nodes - static_cast<int>(joined_.size()) -
                              static_cast<int>(outstanding_.size()));
}

void Round::Admit(const SharedNode& node) {
  const auto previous = previous_ranks_->find(node->node_id);
  joined_.emplace_back(node, previous == previous_ranks_->end() ? -1 : previous->second);
  joined_ids_.insert(node->node_id);
  // Nobody has two places.
  MUSTER_CHECK(joined_ids_.size() == joined_.size());
}

void Round::PromoteSpares() {
  while (FreePlaces() > 0 && !spares_.empty()) {
    Admit(spares_.front());
    spares_.erase(spares_.begin());
  }
}

void Round::Settle(TimePoint now) {
  const int in = static_cast<int>(joined_.size());
  if (in < settings_.min_nodes) {
    last_call_ends_.reset();
    return;
  }
  const bool all_back = anyone_returned_ && outstanding_.empty();
  if (!held_ && (in == settings_.max_nodes || all_back)) {
    Complete();
    return;
  }
  // While a place is kept, it is known which node is coming; the last call starts when no place is.
  if (!outstanding_.empty()) {
    last_call_ends_.reset();
  } else if (!last_call_ends_) {
    last_call_ends_ = now + settings_.last_call;
  }
}

void Round::Complete() {
  MUSTER_CHECK(state_ == State::kGathering);
  // No worker of the round before may still run.
  MUSTER_CHECK(outstanding_.empty() && !held_);
  MUSTER_CHECK(static_cast<int>(joined_.size()) >= settings_.min_nodes);
  MUSTER_CHECK(static_cast<int>(joined_.size()) <= settings_.max_nodes);
  members_ = OrderRanks(std::exchange(joined_, {}));
  MUSTER_CHECK(members_.size() == joined_ids_.size());
  state_ = State::kComplete;
  last_call_ends_.reset();
}

std::string Round::Explain(TimePoint now) const {
  const std::string name = absl::StrCat("round ", number_);
  const int in = static_cast<int>(joined_.size());
  const std::string spares =
      spares_.empty() ? "" : absl::StrCat("; ", base::Count(spares_.size(), "spare"), " waiting");
  if (state_ == State::kComplete) {
    const auto rank = [](const Placement& member) {
      return absl::StrCat(member.group_rank, "=", member.node->host);
    };
    return absl::StrCat(name, " has ", base::Count(members_.size(), "node"), ": ",
                        ShortListOf(members_, rank), spares);
  }

  const int min = settings_.min_nodes, max = settings_.max_nodes;
  const std::string wanted = min == max ? absl::StrCat(max) : absl::StrCat(min, " to ", max);
  const auto host = [](const Candidate& joined) { return joined.node->host; };
  const std::string here =
      absl::StrCat(in, " of ", wanted, (max == 1 ? " node is here" : " nodes are here"),
                   in == 0 ? "" : absl::StrCat(" (", ShortListOf(joined_, host), ")"));
  if (state_ == State::kTimedOut) {
    return absl::StrCat(name, " was not complete within ", base::Seconds(settings_.join_timeout),
                        ": ", here, MissingHints(joined_, max));
  }

  if (!outstanding_.empty()) {
    const auto awaited = [](const auto& numbered) { return numbered.second.host; };
    return absl::StrCat(name, ": ", here, "; waiting for ", ShortListOf(outstanding_, awaited),
                        " to stop the last round's workers", spares);
  }
  if (held_ && in >= min) {
    return absl::StrCat(name, ": ", here, "; it starts in ", base::Seconds(earliest_ - now),
                        spares);
  }
  if (last_call_ends_) {
    return absl::StrCat(name, ": ", here, "; last call for more ends in ",
                        base::Seconds(*last_call_ends_ - now), spares);
  }
  return absl::StrCat(name, ": ", here, "; waiting for ", min - in, " more",
                      MissingHints(joined_, max), ", giving up in ", base::Seconds(gives_up_ - now),
                      spares);
}

std::string Round::ExplainSpare() const {
  const size_t in = state_ == State::kComplete ? members_.size() : settings_.max_nodes;
  return absl::StrCat(
      "round ", number_, " has ", base::Count(in, "node"),
      ", its maximum; this node is a spare and replaces the first node that is lost");
}

}  // namespace muster::rendezvous
