#include "trainer/pipeline/simulation.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "base/phrases.h"
#include "trainer/pipeline/order_check.h"

namespace muster::trainer {
namespace {

Milliseconds TimeOf(ActionKind kind, const PassTimes& times) {
  switch (kind) {
    case ActionKind::kForward:
      return times.forward;
    case ActionKind::kBackward:
      return times.backward_input + times.backward_weight;
    case ActionKind::kBackwardInput:
      return times.backward_input;
    case ActionKind::kBackwardWeight:
      return times.backward_weight;
  }
  return Milliseconds(0);
}

// When what other parts wait for is done: each part's forwards, or each part's backwards.
class Results {
 public:
  explicit Results(const PipelineShape& shape)
      : micro_batches_(shape.micro_batches),
        ends_(static_cast<std::size_t>(shape.parts() * shape.micro_batches)) {}

  std::optional<Milliseconds>& At(int part, int micro_batch) {
    return ends_[static_cast<std::size_t>(part * micro_batches_ + micro_batch)];
  }

 private:
  const int micro_batches_;
  std::vector<std::optional<Milliseconds>> ends_;
};

// Plays a schedule whose ranks' orders are right, round after round: in each, every rank does what
// it can do.
class Player {
 public:
  Player(const PipelineSchedule& schedule, const PassTimes& times)
      : schedule_(schedule),
        shape_(schedule.shape),
        times_(times),
        forwards_(shape_),
        backwards_(shape_),
        live_(schedule.ranks.size()) {
    timeline_.shape = shape_;
    timeline_.ranks.resize(schedule.ranks.size());
  }

  absl::StatusOr<PipelineTimeline> Play() {
    const std::size_t all = schedule_.size();
    for (std::size_t done = 0; done < all;) {
      std::size_t more = 0;
      for (int rank = 0; rank < shape_.stages; ++rank) more += Advance(rank);
      if (more == 0) return Deadlock();
      done += more;
    }
    Milliseconds busy{0};
    for (const RankTimeline& rank : timeline_.ranks) {
      timeline_.step = std::max(timeline_.step, rank.actions.back().end);
      busy += rank.busy;
    }
    timeline_.bubble = 1 - busy / (timeline_.step * static_cast<double>(shape_.stages));
    return std::move(timeline_);
  }

 private:
  // The part whose result `action` needs, and another rank may have to send; none for the forward
  // of the first part, the backward of the last one, and gradients of weights.
  std::optional<int> NeededPart(const PipelineAction& action, int rank) const {
    const int part = shape_.PartOf(rank, action.chunk);
    if (action.kind == ActionKind::kBackwardWeight) return std::nullopt;
    const int needed = action.kind == ActionKind::kForward ? part - 1 : part + 1;
    if (needed < 0 || needed == shape_.parts()) return std::nullopt;
    return needed;
  }

  // When `action` has what it needs; none while that is not known.
  std::optional<Milliseconds> ReadyAt(const PipelineAction& action, int rank) {
    const std::optional<int> part = NeededPart(action, rank);
    if (!part) return Milliseconds(0);
    Results& results = action.kind == ActionKind::kForward ? forwards_ : backwards_;
    const std::optional<Milliseconds> end = results.At(*part, action.micro_batch);
    if (!end || shape_.RankOf(*part) == rank) return end;
    return *end + times_.message;
  }

  // Does what `rank` can do by now; returns how many actions that are.
  std::size_t Advance(int rank) {
    const auto place = static_cast<std::size_t>(rank);
    const RankActions& todo = schedule_.ranks[place];
    RankTimeline& timeline = timeline_.ranks[place];
    const std::size_t before = timeline.actions.size();
    while (timeline.actions.size() < todo.size()) {
      const PipelineAction& action = todo[timeline.actions.size()];
      const std::optional<Milliseconds> ready = ReadyAt(action, rank);
      if (!ready) break;
      const Milliseconds free =
          timeline.actions.empty() ? Milliseconds(0) : timeline.actions.back().end;
      const Milliseconds start = std::max(free, *ready);
      const Milliseconds length = TimeOf(action.kind, times_) / shape_.chunks;
      timeline.actions.push_back({action, start, start + length});
      timeline.busy += length;
      Record(action, rank, start + length);
    }
    return timeline.actions.size() - before;
  }

  // Notes what others wait for, and how many micro-batches are live.
  void Record(const PipelineAction& action, int rank, Milliseconds end) {
    const auto place = static_cast<std::size_t>(rank);
    const int part = shape_.PartOf(rank, action.chunk);
    if (action.kind == ActionKind::kForward) {
      forwards_.At(part, action.micro_batch) = end;
      timeline_.ranks[place].most_live = std::max(timeline_.ranks[place].most_live, ++live_[place]);
      return;
    }
    if (action.kind != ActionKind::kBackwardWeight) backwards_.At(part, action.micro_batch) = end;
    if (action.kind != ActionKind::kBackwardInput) --live_[place];
  }

  // The sentence about ranks none of which can go on. A rank with nothing left to do has sent all
  // that others could wait for, so who waits for whom leads around in a circle.
  absl::Status Deadlock() const {
    int rank = 0;
    while (!Waits(rank)) ++rank;
    std::vector<bool> seen(schedule_.ranks.size());
    for (; !seen[static_cast<std::size_t>(rank)]; rank = Sender(rank)) {
      seen[static_cast<std::size_t>(rank)] = true;
    }
    const int first = rank;
    std::vector<std::string> waits;
    do {
      waits.push_back(absl::StrCat("rank ", rank, " for rank ", Sender(rank), " before ",
                                   PhraseOf(Next(rank), shape_)));
      rank = Sender(rank);
    } while (rank != first);
    return absl::InvalidArgumentError(
        absl::StrCat("play a pipeline schedule: it waits for itself, ", base::ShortList(waits)));
  }

  bool Waits(int rank) const {
    const auto place = static_cast<std::size_t>(rank);
    return timeline_.ranks[place].actions.size() < schedule_.ranks[place].size();
  }
  const PipelineAction& Next(int rank) const {
    const auto place = static_cast<std::size_t>(rank);
    return schedule_.ranks[place][timeline_.ranks[place].actions.size()];
  }
  // Whom a rank waits for that cannot go on.
  int Sender(int rank) const { return shape_.RankOf(*NeededPart(Next(rank), rank)); }

  const PipelineSchedule& schedule_;
  const PipelineShape shape_;
  const PassTimes times_;
  Results forwards_;
  Results backwards_;
  std::vector<int> live_;  // of each rank
  PipelineTimeline timeline_;
};

}  // namespace

absl::StatusOr<PipelineTimeline> Simulate(const PipelineSchedule& schedule,
                                          const PassTimes& times) {
  const absl::Status checked = CheckRankOrders(schedule);
  if (!checked.ok()) return checked;
  return Player(schedule, times).Play();
}

}  // namespace muster::trainer
