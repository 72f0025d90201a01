#include "rendezvous/core/job/job_history.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"

#include "rendezvous/core/job/job.h"

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

std::string RanksInWords(int first, int last) {
  return first == last ? absl::StrCat("rank ", first) : absl::StrCat("ranks ", first, " to ", last);
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

RoundRuns JobHistory::Run(TimePoint now) {
  rounds_.back().running = now;
  if (!down_since_) return {};
  return {.recovered = now - *std::exchange(down_since_, std::nullopt)};
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

std::string RanksOf(const LogPlace& place) {
  return RanksInWords(place.first_rank, place.first_rank + place.workers - 1);
}

std::vector<RankRange> WantedOf(const LogPlace& place, const std::vector<RankRange>& wanted) {
  const RankRange all{place.first_rank, place.first_rank + place.workers - 1};
  if (wanted.empty()) return {all};
  std::vector<RankRange> ranks;
  for (const RankRange& range : wanted) {
    const RankRange both{std::max(range.first, all.first), std::min(range.last, all.last)};
    if (both.first <= both.last) ranks.push_back(both);
  }
  return ranks;
}

std::vector<LogPosition> PositionsIn(const std::vector<RankRange>& ranks,
                                     const std::vector<LogPosition>& all) {
  std::vector<LogPosition> positions;
  for (const LogPosition& position : all) {
    const bool is_wanted = std::any_of(ranks.begin(), ranks.end(), [&](const RankRange& range) {
      return range.first <= position.rank && position.rank <= range.last;
    });
    if (is_wanted) positions.push_back(position);
  }
  return positions;
}

bool ComesBack(const LogRequest& request) {
  return request.incarnation != 0 && request.round.has_value();
}

absl::StatusOr<const LogPlacesOfRound*> FirstRound(const LogRequest& request, const Job& job) {
  const auto& known = job.log_places().rounds();
  if (request.round) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const LogPlacesOfRound& each) {
      return each.round == *request.round;
    });
    if (found != known.end()) return &*found;
    if (ComesBack(request)) {
      const LogPlacesOfRound* const next = job.log_places().FindAfter(*request.round);
      if (next != nullptr || !job.ended()) return next;
    }
    return absl::OutOfRangeError(absl::StrCat(
        "round ", *request.round, " of job '", job.run_id(), "' is not known here",
        known.empty()
            ? ""
            : absl::StrCat("; rounds ", known.front().round, " to ", known.back().round, " are")));
  }
  if (request.previous) {
    if (known.size() > 1) return &known[known.size() - 2];
    return absl::OutOfRangeError(
        absl::StrCat("no round of job '", job.run_id(), "' before the last one is known here"));
  }
  return known.empty() ? nullptr : &known.back();
}

absl::Status CheckRanks(const LogRequest& request, const LogPlacesOfRound& round) {
  const LogPlace& last = round.places.back();
  const int ranks = last.first_rank + last.workers;
  for (const RankRange& range : request.ranks) {
    if (range.first < 0 || range.last < range.first) {
      return absl::InvalidArgumentError(
          absl::StrCat("from rank ", range.first, " to rank ", range.last, " there is none"));
    }
    if (range.last >= ranks) {
      return absl::OutOfRangeError(absl::StrCat("round ", round.round, " of job '", request.run_id,
                                                "' has ", RanksInWords(0, ranks - 1),
                                                ", and no rank ", std::max(range.first, ranks)));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::rendezvous
