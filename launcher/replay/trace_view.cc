#include "launcher/replay/views.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json.h"

namespace muster::launcher {
namespace {

using base::JsonText;

std::string Micros(Offset at) {
  return absl::StrFormat("%.3f", static_cast<double>(at.count()) / 1000);
}

// The lines of a trace. Perfetto identifies threads by number alone, so numbers are unique across
// processes, and none is 0, Linux' idle thread.
class Trace {
 public:
  struct Track {
    int process;
    int thread;
  };

  int AddProcess(const std::string& name) {
    const int process = ++last_;
    Name("process_name", {process, process}, name);
    Add(absl::StrCat(R"({"ph":"M","name":"process_sort_index","pid":)", process, R"(,"tid":)",
                     process, R"(,"args":{"sort_index":)", process, "}}"));
    return process;
  }

  // Adds a thread; a process' first thread has the number of the process.
  Track AddThread(int process, const std::string& name, bool is_first = false) {
    const Track track{process, is_first ? process : ++last_};
    Name("thread_name", track, name);
    return track;
  }

  void Slice(Track track, const std::string& name, Offset from, Offset to,
             const std::string& args) {
    Add(absl::StrCat(R"({"ph":"X","name":)", JsonText(name), Of(track), R"(,"ts":)", Micros(from),
                     R"(,"dur":)", Micros(std::max(Offset(0), to - from)), R"(,"args":{)", args,
                     "}}"));
  }

  // `scope`: "t" marks the thread, "g" the whole trace.
  void Instant(Track track, const std::string& name, Offset at, const char* scope) {
    Add(absl::StrCat(R"({"ph":"i","name":)", JsonText(name), Of(track), R"(,"ts":)", Micros(at),
                     R"(,"s":")", scope, "\"}"));
  }

  std::string Finish() && { return std::move(text_) + "\n]}\n"; }

 private:
  static std::string Of(Track track) {
    return absl::StrCat(R"(,"pid":)", track.process, R"(,"tid":)", track.thread);
  }
  void Name(const char* what, Track track, const std::string& name) {
    Add(absl::StrCat(R"({"ph":"M","name":")", what, "\"", Of(track), R"(,"args":{"name":)",
                     JsonText(name), "}}"));
  }
  void Add(const std::string& event) {
    absl::StrAppend(&text_, text_.size() > begin_ ? ",\n" : "\n", event);
  }

  std::string text_ = R"({"displayTimeUnit":"ms","traceEvents":[)";
  std::size_t begin_ = text_.size();
  int last_ = 0;
};

void AddPhases(const RestartCost& cost, Trace::Track track, Trace& trace) {
  const std::string name = absl::StrCat("restart ", cost.from, " to ", cost.to);
  const std::string args = absl::StrCat(R"("cause":)", JsonText(cost.cause));
  const Offset end = cost.progress.value_or(cost.started.value_or(cost.gathered));
  trace.Slice(track, name, cost.detected, end, args);
  trace.Slice(track, "stopping", cost.detected, cost.stopped, "");
  trace.Slice(track, "gathering", cost.stopped, cost.gathered, "");
  if (cost.started) trace.Slice(track, "starting", cost.gathered, *cost.started, "");
  if (cost.progress) trace.Slice(track, "to first progress", *cost.started, *cost.progress, "");
}

// Its log may be that of another node than the rank's.
bool IsOfJob(const Incident& incident) {
  return incident.kind == AgentEventKind::kStraggler ||
         incident.kind == AgentEventKind::kStragglerOver;
}

void AddJob(const Timeline& timeline, Trace& trace) {
  const int process = trace.AddProcess(absl::StrCat("job ", timeline.job));
  const Trace::Track rounds = trace.AddThread(process, "rounds", /*is_first=*/true);
  for (const RoundSpan& round : timeline.rounds) {
    trace.Slice(rounds, absl::StrCat("round ", round.number),
                round.started.value_or(round.gathered), round.ended,
                absl::StrCat(R"("cause":)", JsonText(round.cause), R"(,"nodes":)", round.nodes,
                             R"(,"ranks":)", round.world_size));
    if (round.detected) trace.Instant(rounds, round.cause, *round.detected, "g");
  }
  if (!timeline.restarts.empty()) {
    const Trace::Track restarts = trace.AddThread(process, "restarts");
    for (const RestartCost& cost : timeline.restarts) AddPhases(cost, restarts, trace);
  }
  std::optional<Trace::Track> stragglers;
  for (const Incident& incident : timeline.incidents) {
    if (!IsOfJob(incident)) continue;
    if (!stragglers) stragglers = trace.AddThread(process, "stragglers");
    trace.Instant(*stragglers, incident.what, incident.at, "t");
  }
}

// The threads of one node.
class NodeTracks {
 public:
  NodeTracks(const std::string& id, Trace& trace)
      : trace_(trace),
        process_(trace.AddProcess(id)),
        agent_(trace.AddThread(process_, "agent", /*is_first=*/true)) {}

  Trace::Track Rank(int rank) {
    auto found = ranks_.find(rank);
    if (found == ranks_.end()) {
      found = ranks_.emplace(rank, trace_.AddThread(process_, absl::StrCat("rank ", rank))).first;
    }
    return found->second;
  }

  // The track of a rank, or of the agent if `rank` is -1.
  Trace::Track Of(int rank) { return rank >= 0 ? Rank(rank) : agent_; }

 private:
  Trace& trace_;
  const int process_;
  const Trace::Track agent_;
  std::map<int, Trace::Track> ranks_;
};

void AddRanks(const RoundSpan& round, const RoundNode& member, const Timeline& timeline,
              NodeTracks& tracks, Trace& trace) {
  if (!member.started) return;
  const std::string name = absl::StrCat("round ", round.number);
  // A truncated log shows how far it goes.
  const Offset end = member.gone.value_or(timeline.nodes[member.node].last);
  for (int local = 0; local < member.workers; ++local) {
    const int rank = member.first_rank + local;
    const bool failed = rank == member.failed_rank;
    const std::string how = failed                   ? "failed"
                            : member.end.empty()     ? "the log ends"
                            : member.end == "failed" ? "stopped"
                                                     : member.end;
    trace.Slice(tracks.Rank(rank), name, *member.started, end,
                absl::StrCat(R"("end":)", JsonText(how), R"(,"local_rank":)", local));
  }
}

}  // namespace

std::string TraceView(const Timeline& timeline) {
  Trace trace;
  AddJob(timeline, trace);
  // Incidents and rounds by node.
  std::vector<std::vector<const Incident*>> incidents(timeline.nodes.size());
  for (const Incident& incident : timeline.incidents) {
    if (!IsOfJob(incident)) incidents[incident.node].push_back(&incident);
  }
  std::vector<std::vector<std::pair<const RoundSpan*, const RoundNode*>>> parts(
      timeline.nodes.size());
  for (const RoundSpan& round : timeline.rounds) {
    for (const RoundNode& member : round.members) parts[member.node].emplace_back(&round, &member);
  }
  for (std::size_t node = 0; node < timeline.nodes.size(); ++node) {
    NodeTracks tracks(timeline.nodes[node].id, trace);
    for (const auto& [round, member] : parts[node]) {
      AddRanks(*round, *member, timeline, tracks, trace);
    }
    for (const Incident* incident : incidents[node]) {
      trace.Instant(tracks.Of(incident->rank), incident->what, incident->at, "t");
    }
  }
  return std::move(trace).Finish();
}

}  // namespace muster::launcher
