#include "launcher/replay/timeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "base/text.h"

namespace muster::launcher {
namespace {

using enum AgentEventKind;

// The maximum of a node; a larger number in a log is clamped.
constexpr int kMostWorkers = 65'536;

using Rounds = std::map<rendezvous::RoundNumber, RoundSpan>;

void Least(std::optional<Offset>& value, Offset other) {
  value = value ? std::min(*value, other) : other;
}

// Adds one node's events to the timeline.
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
    // A repetition after a reconnection is the same place.
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
    // An event after the workers are gone did not end them, except the rendezvous' reason for it.
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

// Why the round ended. The rendezvous' reason comes first, as it is the same on all nodes.
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
    // A killed node's log may lack its last lines.
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
  // These moments come from different nodes: keep the remaining clock error from reversing their
  // order.
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

namespace {

constexpr AgentEventKind kEnds[] = {kHang,   kWorkerFailed, kToldToStop, kSignal, kDrained,
                                    kFenced, kEvicted,      kLost,       kVerdict};
constexpr AgentEventKind kOtherIncidents[] = {
    kWorkerStopped, kWorkerContinued, kOutputLost, kStraggler,  kStragglerOver,
    kOperations,    kEvidence,        kUnfit,      kOutOfTouch, kBackInTouch};
// What a node does, before the event's cause.
constexpr std::pair<AgentEventKind, const char*> kOfNode[] = {
    {kUnfit, "is not fit: "},
    {kSignal, "received "},
    {kDrained, "leaves: "},
    {kOutOfTouch, "lost its connection: "},
    {kBackInTouch, "is connected again after "},
    {kFenced, "ended its workers itself: "},
    {kEvicted, "lost its place: "},
    {kLost, "lost the rendezvous: "}};

}  // namespace

bool EndsRound(AgentEventKind kind) {
  return absl::c_linear_search(kEnds, kind);
}

bool IsIncident(AgentEventKind kind) {
  return EndsRound(kind) || absl::c_linear_search(kOtherIncidents, kind);
}

std::string DescribeIncident(const LoggedEvent& event, const std::string& node) {
  const std::string of_rank = absl::StrCat("rank ", event.rank, " ");
  switch (event.kind) {
    case kHang:
    case kWorkerFailed:
    case kWorkerStopped:
    case kOutputLost:
      return absl::StrCat(of_rank, event.cause);
    case kWorkerContinued:
      return absl::StrCat(of_rank, "was continued");
    case kEvidence:
      return event.cause.empty() ? absl::StrCat(of_rank, "was examined")
                                 : absl::StrCat(of_rank, "was examined: ", event.cause);
    default:
      break;
  }
  for (const auto& [kind, does] : kOfNode) {
    if (kind == event.kind) return absl::StrCat("node ", node, " ", does, event.cause);
  }
  return event.cause;
}

namespace {

using std::chrono::nanoseconds;

double SecondsIn(nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

// "node ranks 1, 3" without a log; no more than ShortList() needs.
std::string MissingRanks(const RoundSpan& round, std::size_t missing) {
  std::set<int> there;
  for (const RoundNode& member : round.members) there.insert(member.node_rank);
  std::vector<std::string> ranks;
  for (int rank = 0; rank < round.nodes && ranks.size() < base::kShown + 1; ++rank) {
    if (there.count(rank) == 0) ranks.push_back(absl::StrCat(rank));
  }
  return absl::StrCat(missing == 1 ? "node rank " : "node ranks ",
                      base::ShortList(ranks, std::max(missing, ranks.size())));
}

// Adds what is so of these, unless there are none.
void NoteList(absl::string_view what, const std::vector<std::string>& these, Timeline& timeline) {
  if (!these.empty()) timeline.notes.push_back(absl::StrCat(what, ": ", base::ShortList(these)));
}

void NoteMissingNodes(Timeline& timeline) {
  std::vector<std::string> gaps;
  for (const RoundSpan& round : timeline.rounds) {
    const auto there = static_cast<int>(round.members.size());
    if (there >= round.nodes) continue;
    const auto missing = static_cast<std::size_t>(round.nodes - there);
    gaps.push_back(absl::StrCat("round ", round.number, " (", MissingRanks(round, missing), ")"));
  }
  NoteList("the logs of some nodes are missing, and their ranks are not shown", gaps, timeline);
}

void NoteLogsThatEnd(Timeline& timeline) {
  std::vector<std::string> ends;
  for (const RoundSpan& round : timeline.rounds) {
    for (const RoundNode& member : round.members) {
      if (member.gone) continue;
      const TimelineNode& node = timeline.nodes[member.node];
      ends.push_back(absl::StrCat(node.id, " (round ", round.number, ", ",
                                  absl::StrFormat("%.3f s", SecondsIn(node.last)), ")"));
    }
  }
  NoteList("the logs of these nodes end in the middle of a round, as happens when a node is killed",
           ends, timeline);
}

void NoteClocks(Timeline& timeline) {
  std::vector<std::string> moved, alone, stepped;
  const TimelineNode* reference = nullptr;
  for (const TimelineNode& node : timeline.nodes) {
    const NodeClock& clock = node.clock;
    if (clock.is_reference) reference = &node;
    if (clock.moved.count() != 0) {
      moved.push_back(
          absl::StrFormat("%s by %+.3f s (from %s)", node.id, SecondsIn(clock.moved),
                          base::Count(static_cast<std::size_t>(clock.common), "moment")));
    }
    if (!clock.is_reference && clock.common == 0) alone.push_back(node.id);
    if (std::chrono::abs(clock.stepped) >= std::chrono::milliseconds(50)) {
      stepped.push_back(absl::StrFormat("%s by %+.3f s", node.id, SecondsIn(clock.stepped)));
    }
  }
  if (!moved.empty()) {
    timeline.notes.push_back(
        absl::StrCat("the clocks of nodes differ; these were shifted to that of ", reference->id,
                     ", by the beginnings and ends of rounds in common: ", base::ShortList(moved)));
  }
  NoteList("these nodes share no round with the others, so their own clocks are used", alone,
           timeline);
  NoteList("these clocks were set while the job ran, which does not affect this timeline", stepped,
           timeline);
}

}  // namespace

void NoteGaps(Timeline& timeline) {
  NoteMissingNodes(timeline);
  NoteLogsThatEnd(timeline);
  NoteClocks(timeline);
}

}  // namespace muster::launcher
