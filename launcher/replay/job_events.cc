#include "launcher/replay/job_events.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "base/text.h"

namespace muster::launcher {
namespace {

using std::chrono::nanoseconds;
using Life = std::optional<rendezvous::Incarnation>;

// By job, then by node id.
using Jobs = std::map<std::string, std::map<std::string, NodeEvents>>;

Jobs Merge(std::vector<EventFile> files) {
  Jobs jobs;
  for (EventFile& file : files) {
    for (NodeEvents& part : file.nodes) {
      NodeEvents& whole = jobs[part.job][part.node];
      whole.job = part.job;
      whole.node = part.node;
      std::move(part.events.begin(), part.events.end(), std::back_inserter(whole.events));
    }
  }
  for (auto& [job, nodes] : jobs) {
    for (auto& [id, node] : nodes) {
      std::stable_sort(node.events.begin(), node.events.end(),
                       [](const LoggedEvent& one, const LoggedEvent& other) {
                         return one.monotonic < other.monotonic;
                       });
    }
  }
  return jobs;
}

// An agent belongs to one incarnation of its job: that of its first place.
Life LifeOf(const NodeEvents& node) {
  for (const LoggedEvent& event : node.events) {
    if (event.place) return event.place->incarnation;
  }
  return std::nullopt;
}

struct Span {
  nanoseconds begin = nanoseconds::max();
  nanoseconds end = nanoseconds::min();

  void Take(const NodeEvents& node) {
    begin = std::min(begin, node.events.front().wall);
    end = std::max(end, node.events.back().wall);
  }
  bool Touches(const Span& other) const { return begin <= other.end && other.begin <= end; }
};

absl::Status NoSuchJob(const Jobs& jobs, const std::string& job) {
  std::vector<std::string> names;
  for (const auto& [name, nodes] : jobs) names.push_back(name);
  const std::string there = base::ShortList(names);
  if (job.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("these logs are of several jobs, ", there, "; name one with --job"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("these logs say nothing of job '", job, "'; they are of ", there));
}

// The incarnation that ended last.
Life LastLife(const std::map<std::string, NodeEvents>& nodes) {
  Life last;
  nanoseconds end = nanoseconds::min();
  for (const auto& [id, node] : nodes) {
    const Life life = LifeOf(node);
    if (!life || node.events.back().wall < end) continue;
    last = life;
    end = node.events.back().wall;
  }
  return last;
}

}  // namespace

absl::StatusOr<JobEvents> ChooseJob(std::vector<EventFile> files, const std::string& job) {
  JobEvents chosen;
  for (const EventFile& file : files) {
    chosen.notes.insert(chosen.notes.end(), file.notes.begin(), file.notes.end());
  }
  Jobs jobs = Merge(std::move(files));
  const auto found = job.empty() && jobs.size() == 1 ? jobs.begin() : jobs.find(job);
  if (found == jobs.end()) return NoSuchJob(jobs, job);
  chosen.job = found->first;

  const Life life = LastLife(found->second);
  Span span;
  for (const auto& [id, node] : found->second) {
    if (LifeOf(node) == life) span.Take(node);
  }
  std::set<rendezvous::Incarnation> other_lives;
  std::size_t others = 0;
  for (auto& [id, node] : found->second) {
    const Life own = LifeOf(node);
    Span its;
    its.Take(node);
    // A node that never got a place belongs to the incarnation during which it waited.
    if (own == life || (!own && its.Touches(span))) {
      chosen.nodes.push_back(std::move(node));
      continue;
    }
    ++others;
    if (own) other_lives.insert(*own);
  }
  if (others > 0) {
    chosen.notes.push_back(absl::StrCat(
        base::Count(others, "node"), " of ",
        other_lives.size() > 1 ? absl::StrCat(other_lives.size(), " other jobs")
                               : std::string("another job"),
        " of the same name, which ended earlier, ", others == 1 ? "is" : "are", " left out"));
  }
  return chosen;
}

namespace {

// An event that all nodes of a round receive at once: its kind and round.
using Moment = std::pair<AgentEventKind, rendezvous::RoundNumber>;
using Moments = std::map<Moment, nanoseconds>;

// When this node received each of them, by its own monotonic clock. Repetitions after a
// reconnection do not count.
Moments MomentsOf(const NodeEvents& node) {
  Moments moments;
  for (const LoggedEvent& event : node.events) {
    if (event.kind == AgentEventKind::kAssigned || event.kind == AgentEventKind::kToldToStop) {
      moments.try_emplace({event.kind, event.round}, event.monotonic);
    }
  }
  return moments;
}

// The offset of the node's wall clock from its monotonic clock.
nanoseconds WallOffset(const LoggedEvent& event) {
  return event.wall - event.monotonic;
}

nanoseconds Median(std::vector<nanoseconds> values) {
  // The lower of two middle values: delays only add.
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Alignment {
 public:
  explicit Alignment(const std::vector<NodeEvents>& nodes) : clocks_(nodes.size()) {
    for (const NodeEvents& node : nodes) {
      moments_.push_back(MomentsOf(node));
      own_.push_back(WallOffset(node.events.front()));
    }
  }

  std::vector<NodeClock> Run() && {
    const auto most = std::max_element(
        moments_.begin(), moments_.end(),
        [](const Moments& one, const Moments& other) { return one.size() < other.size(); });
    const auto reference = static_cast<std::size_t>(most - moments_.begin());
    clocks_[reference].is_reference = true;
    Settle(reference, own_[reference]);
    // A node without a moment in common with the reference may have one with an aligned node.
    while (AlignMore()) {
    }
    for (std::size_t node = 0; node < clocks_.size(); ++node) {
      if (!is_settled_[node]) Settle(node, own_[node]);
    }
    return std::move(clocks_);
  }

 private:
  void Settle(std::size_t node, nanoseconds shift) {
    clocks_[node].shift = shift;
    clocks_[node].moved = shift - own_[node];
    is_settled_[node] = true;
    machines_.try_emplace(own_[node], node);
    for (const auto& [moment, monotonic] : moments_[node]) {
      known_.try_emplace(moment, monotonic + shift);
    }
  }

  // Gives the node the clock of an aligned node on the same machine, if there is one.
  bool SettleBesideNeighbour(std::size_t node) {
    const auto found = machines_.lower_bound(own_[node] - kSameMachine);
    if (found == machines_.end() || found->first > own_[node] + kSameMachine) return false;
    Settle(node, clocks_[found->second].shift);
    clocks_[node].moved = clocks_[found->second].moved;
    clocks_[node].common = std::max(1, clocks_[found->second].common);
    return true;
  }

  // Aligns nodes that share a moment with aligned ones; true if there were any.
  bool AlignMore() {
    bool any = false;
    for (std::size_t node = 0; node < clocks_.size(); ++node) {
      if (is_settled_[node]) continue;
      if (SettleBesideNeighbour(node)) {
        any = true;
        continue;
      }
      std::vector<nanoseconds> shifts;
      for (const auto& [moment, monotonic] : moments_[node]) {
        const auto found = known_.find(moment);
        if (found != known_.end()) shifts.push_back(found->second - monotonic);
      }
      if (shifts.empty()) continue;
      clocks_[node].common = static_cast<int>(shifts.size());
      const nanoseconds shift = Median(std::move(shifts));
      const bool is_arrival = std::chrono::abs(shift - own_[node]) < kArrival;
      Settle(node, is_arrival ? own_[node] : shift);
      any = true;
    }
    return any;
  }

  std::vector<NodeClock> clocks_;
  std::vector<bool> is_settled_ = std::vector<bool>(clocks_.size());
  std::vector<Moments> moments_;
  std::vector<nanoseconds> own_;  // wall clock minus monotonic clock, by node
  Moments known_;                 // on the common clock
  // One aligned node of each machine, by wall clock minus monotonic clock.
  std::map<nanoseconds, std::size_t> machines_;
};

}  // namespace

std::vector<NodeClock> AlignClocks(const std::vector<NodeEvents>& nodes) {
  if (nodes.empty()) return {};
  std::vector<NodeClock> clocks = Alignment(nodes).Run();
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    clocks[node].stepped =
        WallOffset(nodes[node].events.back()) - WallOffset(nodes[node].events.front());
  }
  return clocks;
}

}  // namespace muster::launcher
