#include "launcher/replay/timeline.h"

#include <algorithm>
#include <map>
#include <utility>

#include "launcher/replay/gaps.h"
#include "launcher/replay/incidents.h"

namespace muster::launcher {
namespace {

using enum AgentEventKind;

// No node has more; a log that says so is not believed.
constexpr int kMostWorkers = 65'536;

using Rounds = std::map<rendezvous::RoundNumber, RoundSpan>;

void Least(std::optional<Offset>& value, Offset other) {
  value = value ? std::min(*value, other) : other;
}

// One node's events, put where they belong.
class NodePass {
 public:
  NodePass(std::size_t index, Timeline& timeline, Rounds& rounds)
      : index_(index), timeline_(timeline), rounds_(rounds) {}

  void Take(const LoggedEvent& event, Offset at) {
    if (event.kind == kLogOpened) workers_ = std::clamp(event.workers, 1, kMostWorkers);
    if (event.kind == kVerdict) timeline_.verdict = event.cause;
    if (event.kind == kAssigned) Assign(event, at);
    if (event.kind == kWorkersStarted && IsMember(event.round)) Member().started = at;
    if (event.kind == kFirstBeat && IsMember(event.round)) Least(Round().progress, at);
    if (event.kind == kWorkerFailed && IsMember(event.round)) Member().failed_rank = event.rank;
    TakeIncident(event, at);
    if (event.kind == kWorkersGone && IsMember(event.round)) {
      Member().gone = at;
      Member().end = event.cause;
    }
  }

 private:
  void Assign(const LoggedEvent& event, Offset at) {
    RoundSpan& round = rounds_[event.round];
    round.number = event.round;
    round.nodes = event.place->nodes;
    round.world_size = event.place->world_size;
    round.gathered = std::max(round.gathered, at);
    round_ = event.round;
    // Told again after a reconnection, it is the same place.
    const bool again = std::any_of(round.members.begin(), round.members.end(),
                                   [&](const RoundNode& member) { return member.node == index_; });
    if (again) return;
    round.members.push_back({.node = index_,
                             .node_rank = event.place->node_rank,
                             .first_rank = event.place->first_rank,
                             .workers = workers_,
                             .assigned = at});
  }

  void TakeIncident(const LoggedEvent& event, Offset at) {
    if (!IsIncident(event.kind)) return;
    Incident incident{.at = at,
                      .kind = event.kind,
                      .node = index_,
                      .rank = event.rank,
                      .what = DescribeIncident(event, timeline_.nodes[index_].id)};
    timeline_.incidents.push_back(incident);
    if (!EndsRound(event.kind) || !IsMember(event.round)) return;
    // What is heard when the workers are gone did not end them, but may say why they had to.
    if (Member().gone && event.kind != kToldToStop) return;
    Round().incidents.push_back(std::move(incident));
  }

  bool IsMember(rendezvous::RoundNumber round) const {
    return round != rendezvous::kNoRound && round == round_;
  }
  RoundSpan& Round() { return rounds_[*round_]; }
  RoundNode& Member() {
    auto& members = Round().members;
    return *std::find_if(members.begin(), members.end(),
                         [&](const RoundNode& member) { return member.node == index_; });
  }

  const std::size_t index_;
  Timeline& timeline_;
  Rounds& rounds_;
  int workers_ = 1;
  std::optional<rendezvous::RoundNumber> round_;  // the last in which the node had a place
};

bool AllSucceeded(const RoundSpan& round) {
  return std::all_of(round.members.begin(), round.members.end(),
                     [](const RoundNode& member) { return member.end == "succeeded"; });
}

// Why the round ended. The rendezvous' own words are the same on all nodes, and count first.
std::string CauseOf(const RoundSpan& round) {
  for (const Incident& incident : round.incidents) {
    if (incident.kind == kToldToStop) return incident.what;
  }
  if (!round.incidents.empty()) return round.incidents.front().what;
  return AllSucceeded(round) ? "succeeded" : "the logs do not say why";
}

void FinishRound(RoundSpan& round, const Timeline& timeline) {
  std::sort(
      round.members.begin(), round.members.end(),
      [](const RoundNode& one, const RoundNode& other) { return one.node_rank < other.node_rank; });
  std::stable_sort(round.incidents.begin(), round.incidents.end(), IsEarlier);
  bool all_started = true;
  Offset last_line{0};
  for (const RoundNode& member : round.members) {
    // Of a node that was killed, the last lines may be missing.
    all_started = all_started && (member.started || !member.gone);
    if (member.started)
      round.started = std::max(round.started.value_or(Offset(0)), *member.started);
    if (member.gone) round.stopped = std::max(round.stopped.value_or(Offset(0)), *member.gone);
    last_line = std::max(last_line, timeline.nodes[member.node].last);
  }
  if (!all_started) round.started.reset();
  round.cause = CauseOf(round);
  if (!round.incidents.empty()) round.detected = round.incidents.front().at;
  round.ended = round.detected.value_or(round.stopped.value_or(last_line));
}

RestartCost CostBetween(const RoundSpan& ended, const RoundSpan& next) {
  RestartCost cost{.from = ended.number, .to = next.number, .cause = ended.cause};
  // Moments of different nodes: what is left of the difference of their clocks must not turn them
  // around.
  cost.detected = ended.ended;
  cost.stopped = std::max(cost.detected, ended.stopped.value_or(cost.detected));
  cost.gathered = std::max(cost.stopped, next.gathered);
  if (next.started) cost.started = std::max(cost.gathered, *next.started);
  if (next.started && next.progress) cost.progress = std::max(*cost.started, *next.progress);
  return cost;
}

void FinishRounds(Rounds rounds, Timeline& timeline) {
  for (auto& [number, round] : rounds) {
    FinishRound(round, timeline);
    timeline.has_beats = timeline.has_beats || round.progress.has_value();
    timeline.rounds.push_back(std::move(round));
  }
  for (std::size_t at = 0; at < timeline.rounds.size(); ++at) {
    RoundSpan& round = timeline.rounds[at];
    round.got_further = round.started && (round.progress || !timeline.has_beats);
    if (round.got_further) timeline.useful += std::max(Offset(0), round.ended - *round.started);
    if (at > 0) timeline.restarts.push_back(CostBetween(timeline.rounds[at - 1], round));
  }
}

}  // namespace

double Timeline::Goodput() const {
  return length.count() == 0
             ? 0
             : static_cast<double>(useful.count()) / static_cast<double>(length.count());
}

Timeline MakeTimeline(JobEvents events) {
  Timeline timeline{.job = std::move(events.job), .notes = std::move(events.notes)};
  const std::vector<NodeClock> clocks = AlignClocks(events.nodes);
  timeline.origin = std::chrono::nanoseconds::max();
  for (std::size_t node = 0; node < events.nodes.size(); ++node) {
    timeline.origin =
        std::min(timeline.origin, events.nodes[node].events.front().monotonic + clocks[node].shift);
  }
  Rounds rounds;
  for (std::size_t node = 0; node < events.nodes.size(); ++node) {
    const auto offset = [&](const LoggedEvent& event) {
      return event.monotonic + clocks[node].shift - timeline.origin;
    };
    const std::vector<LoggedEvent>& own = events.nodes[node].events;
    timeline.nodes.push_back({.id = events.nodes[node].node,
                              .clock = clocks[node],
                              .first = offset(own.front()),
                              .last = offset(own.back())});
    timeline.length = std::max(timeline.length, timeline.nodes.back().last);
    NodePass pass(node, timeline, rounds);
    for (const LoggedEvent& event : own) pass.Take(event, offset(event));
  }
  std::stable_sort(timeline.incidents.begin(), timeline.incidents.end(), IsEarlier);
  FinishRounds(std::move(rounds), timeline);
  NoteGaps(timeline);
  return timeline;
}

}  // namespace muster::launcher
