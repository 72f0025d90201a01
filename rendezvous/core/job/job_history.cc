#include "rendezvous/core/job/job_history.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "rendezvous/core/values/limits.h"

namespace muster::rendezvous {

namespace {

// No round has begun in the future, whatever a journal says.
Duration Past(Duration duration) {
  return std::max(duration, Duration::zero());
}

// The part that is kept, without cutting a character in two.
std::string Cut(std::string reason) {
  constexpr std::string_view kEllipsis = "...";
  constexpr std::size_t kMost = limits::kRoundReasonBytes.most;
  if (reason.size() <= kMost) return reason;
  std::size_t size = kMost - kEllipsis.size();
  const auto begins_nothing = [&] {
    return (static_cast<unsigned char>(reason[size]) & 0xc0) == 0x80;
  };
  while (size > 0 && begins_nothing()) --size;
  reason.resize(size);
  return reason.append(kEllipsis);
}

}  // namespace

JobHistory::JobHistory(const HistorySnapshot& told, RoundNumber round, TimePoint now) {
  if (told.ended_ago) finished_ = now - Past(*told.ended_ago);
  begun_ = finished_.value_or(now) - Past(told.age);
  productive_ = Past(told.productive);
  if (told.rounds.empty() || told.rounds.back().number != round) {
    Open(round, now);
    return;
  }
  for (const RoundSnapshot& each : told.rounds) {
    Open(each.number, now - Past(each.opened_ago));
    Entry& entry = rounds_.back();
    entry.nodes = each.nodes;
    entry.workers = each.workers;
    entry.failed_rank = each.failed_rank;
    if (each.gathered) entry.started = entry.opened + Past(*each.gathered);
    any_started_ |= each.gathered.has_value();
    if (!each.end) continue;
    entry.over = entry.started.value_or(entry.opened) + Past(each.ran);
    entry.why = *each.end;
    entry.reason = Cut(each.reason);
  }
}

void JobHistory::Open(RoundNumber round, TimePoint now) {
  rounds_.push_back({.number = round, .opened = now});
  if (rounds_.size() > kMost) rounds_.pop_front();
}

RoundStarted JobHistory::Start(const std::vector<Placement>& members, TimePoint now) {
  Entry& round = rounds_.back();
  round.started = now;
  round.nodes = static_cast<int>(members.size());
  for (const Placement& member : members) round.workers += member.node->slots;
  return {.gathered = now - round.opened, .is_restart = std::exchange(any_started_, true)};
}

void JobHistory::Fail(int rank) {
  if (rank >= 0 && !rounds_.back().failed_rank) rounds_.back().failed_rank = rank;
}

RoundRuns JobHistory::Run(TimePoint now) {
  rounds_.back().running = now;
  if (!down_since_) return {};
  return {.recovered = now - *std::exchange(down_since_, std::nullopt)};
}

Duration JobHistory::AgeOfRound(TimePoint now) const {
  return now - rounds_.back().started.value_or(rounds_.back().opened);
}

Duration JobHistory::CurrentlyProductive(std::optional<Duration> detected, TimePoint now) const {
  const Entry& round = rounds_.back();
  if (!round.running) return {};
  return std::max(now - *round.running - detected.value_or(Duration::zero()), Duration::zero());
}

Duration JobHistory::Productive(TimePoint now) const {
  return productive_ + (finished_ ? Duration::zero() : CurrentlyProductive(std::nullopt, now));
}

void JobHistory::Finish(std::optional<Duration> detected, TimePoint now) {
  productive_ += CurrentlyProductive(detected, now);
  finished_ = now;
}

RoundOver JobHistory::End(RoundEnd why, std::string reason, RoundNumber next,
                          std::optional<Duration> detected, TimePoint now) {
  productive_ += CurrentlyProductive(detected, now);
  Entry& round = rounds_.back();
  if (round.running) down_since_ = now;
  round.over = now;
  round.why = why;
  round.reason = Cut(std::move(reason));
  RoundOver over{.why = why, .ran = {}, .detected = detected};
  if (round.started) over.ran = now - *round.started;
  Open(next, now);
  return over;
}

HistorySnapshot JobHistory::Describe(TimePoint now) const {
  const TimePoint until = finished_.value_or(now);
  HistorySnapshot history{
      .age = until - begun_, .productive = Productive(now), .ended_ago = {}, .rounds = {}};
  if (finished_) history.ended_ago = now - *finished_;
  for (const Entry& round : rounds_) {
    RoundSnapshot snapshot{.number = round.number,
                           .opened_ago = now - round.opened,
                           .nodes = round.nodes,
                           .workers = round.workers,
                           .failed_rank = round.failed_rank};
    if (round.started) {
      snapshot.gathered = *round.started - round.opened;
      snapshot.ran = round.over.value_or(until) - *round.started;
    }
    if (round.over) {
      snapshot.end = round.why;
      snapshot.reason = round.reason;
    }
    history.rounds.push_back(std::move(snapshot));
  }
  return history;
}

LogPlacesOfRound PlacesOf(RoundNumber round, const std::string& reason,
                          const std::vector<Placement>& members,
                          const std::vector<AttendeeId>& attendees) {
  LogPlacesOfRound places{.round = round, .reason = reason, .places = {}};
  places.places.reserve(members.size());
  int first_rank = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const NodeInfo& node = members[i].node;
    places.places.push_back({.attendee = attendees[i],
                             .host = node.host,
                             .first_rank = first_rank,
                             .workers = node.slots,
                             .delivers = node.delivers_logs});
    first_rank += node.slots;
  }
  return places;
}

}  // namespace muster::rendezvous
