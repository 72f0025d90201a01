#include "launcher/replay/clocks.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace muster::launcher {
namespace {

using std::chrono::nanoseconds;

// A moment that nodes have in common: what is told, and of which round.
using Moment = std::pair<AgentEventKind, rendezvous::RoundNumber>;
using Moments = std::map<Moment, nanoseconds>;

// When this node heard of each moment, by its own monotonic clock. A message that is repeated after
// a reconnection counts when it came first.
Moments MomentsOf(const NodeEvents& node) {
  Moments moments;
  for (const LoggedEvent& event : node.events) {
    if (event.kind == AgentEventKind::kAssigned || event.kind == AgentEventKind::kToldToStop) {
      moments.try_emplace({event.kind, event.round}, event.monotonic);
    }
  }
  return moments;
}

// The node's wall clock beyond its monotonic one.
nanoseconds WallOffset(const LoggedEvent& event) {
  return event.wall - event.monotonic;
}

nanoseconds Median(std::vector<nanoseconds> values) {
  // Of two in the middle the smaller one: delays only ever add.
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
    // A node that shares nothing with the reference may share something with a node that does.
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

  // Gives the node the clock of one on the same machine, if there is one that is aligned.
  bool SettleBesideNeighbour(std::size_t node) {
    const auto found = machines_.lower_bound(own_[node] - kSameMachine);
    if (found == machines_.end() || found->first > own_[node] + kSameMachine) return false;
    Settle(node, clocks_[found->second].shift);
    clocks_[node].moved = clocks_[found->second].moved;
    clocks_[node].common = std::max(1, clocks_[found->second].common);
    return true;
  }

  // Aligns the nodes that share a moment with those that are aligned; whether there was one.
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
  std::vector<nanoseconds> own_;  // each node's own wall clock beyond its monotonic one
  Moments known_;                 // on the common clock
  // Of each machine a node that is aligned, by the node's wall clock beyond its monotonic one.
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
