#include "trainer/pipeline/simulation.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "base/text.h"

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

// When results are ready that other parts wait for: each part's forwards, or each part's backwards.
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

// Simulates a schedule with valid orders, in rounds: in each, every rank does everything it can.
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
  // The part whose result `action` needs, possibly from another rank; none for the forward of the
  // first part, the backward of the last one, and gradients of weights.
  std::optional<int> NeededPart(const PipelineAction& action, int rank) const {
    const int part = shape_.PartOf(rank, action.chunk);
    if (action.kind == ActionKind::kBackwardWeight) return std::nullopt;
    const int needed = action.kind == ActionKind::kForward ? part - 1 : part + 1;
    if (needed < 0 || needed == shape_.parts()) return std::nullopt;
    return needed;
  }

  // When the input of `action` is available; none if unknown yet.
  std::optional<Milliseconds> ReadyAt(const PipelineAction& action, int rank) {
    const std::optional<int> part = NeededPart(action, rank);
    if (!part) return Milliseconds(0);
    Results& results = action.kind == ActionKind::kForward ? forwards_ : backwards_;
    const std::optional<Milliseconds> end = results.At(*part, action.micro_batch);
    if (!end || shape_.RankOf(*part) == rank) return end;
    return *end + times_.message;
  }

  // Does everything `rank` can do now; returns the number of actions.
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

  // Records results for others, and how many micro-batches are live.
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

  // The sentence about a deadlock. A rank that has finished has sent everything others could wait
  // for, so the waits form a cycle.
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
  // The rank that a stuck rank waits for.
  int Sender(int rank) const { return shape_.RankOf(*NeededPart(Next(rank), rank)); }

  const PipelineSchedule& schedule_;
  const PipelineShape shape_;
  const PassTimes times_;
  Results forwards_;
  Results backwards_;
  std::vector<int> live_;  // by rank
  PipelineTimeline timeline_;
};

}  // namespace

absl::StatusOr<PipelineTimeline> Simulate(const PipelineSchedule& schedule,
                                          const PassTimes& times) {
  const absl::Status checked = CheckRankOrders(schedule);
  if (!checked.ok()) return checked;
  return Player(schedule, times).Play();
}

namespace {

// The progress of a micro-batch in a chunk.
enum class Passed { kNothing, kForward, kInput, kAll };

absl::Status Wrong(int rank, const std::string& sentence) {
  return absl::InvalidArgumentError(
      absl::StrCat("check a pipeline schedule: rank ", rank, " ", sentence));
}

Passed Needed(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return Passed::kNothing;
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
      return Passed::kForward;
    case ActionKind::kBackwardWeight:
      return Passed::kInput;
  }
  return Passed::kAll;
}

Passed After(ActionKind kind) {
  if (kind == ActionKind::kForward) return Passed::kForward;
  return kind == ActionKind::kBackwardInput ? Passed::kInput : Passed::kAll;
}

// The next action for that progress.
ActionKind Missing(Passed passed) {
  if (passed == Passed::kNothing) return ActionKind::kForward;
  return passed == Passed::kForward ? ActionKind::kBackward : ActionKind::kBackwardWeight;
}

absl::Status CheckRank(const RankActions& actions, const PipelineShape& shape, int rank) {
  std::vector<Passed> passed(static_cast<std::size_t>(shape.chunks * shape.micro_batches));
  for (const PipelineAction& action : actions) {
    if (action.chunk < 0 || action.chunk >= shape.chunks || action.micro_batch < 0 ||
        action.micro_batch >= shape.micro_batches) {
      return Wrong(rank,
                   absl::StrCat("has micro-batch ", action.micro_batch, " in chunk ", action.chunk,
                                ", but there are ", shape.micro_batches, " micro-batches and ",
                                base::Count(static_cast<std::size_t>(shape.chunks), "chunk")));
    }
    Passed& so_far =
        passed[static_cast<std::size_t>(action.chunk * shape.micro_batches + action.micro_batch)];
    const Passed needed = Needed(action.kind);
    if (so_far > needed) {
      return Wrong(rank, absl::StrCat("does ", PhraseOf(action, shape), " twice"));
    }
    if (so_far < needed) {
      PipelineAction before{Missing(so_far), action.chunk, action.micro_batch};
      // In a split backward, the first half is missing.
      if (so_far == Passed::kForward) before.kind = ActionKind::kBackwardInput;
      return Wrong(rank, absl::StrCat("does ", PhraseOf(action, shape), " before ",
                                      PhraseOf(before, shape)));
    }
    so_far = After(action.kind);
  }
  for (std::size_t place = 0; place < passed.size(); ++place) {
    if (passed[place] == Passed::kAll) continue;
    const PipelineAction missing{Missing(passed[place]),
                                 static_cast<int>(place) / shape.micro_batches,
                                 static_cast<int>(place) % shape.micro_batches};
    return Wrong(rank, absl::StrCat("never does ", PhraseOf(missing, shape)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRankOrders(const PipelineSchedule& schedule) {
  if (schedule.ranks.size() != static_cast<std::size_t>(schedule.shape.stages)) {
    return absl::InvalidArgumentError(absl::StrCat("check a pipeline schedule: it is for ",
                                                   base::Count(schedule.ranks.size(), "rank"),
                                                   ", and the stages are ", schedule.shape.stages));
  }
  for (int rank = 0; rank < schedule.shape.stages; ++rank) {
    const absl::Status checked =
        CheckRank(schedule.ranks[static_cast<std::size_t>(rank)], schedule.shape, rank);
    if (!checked.ok()) return checked;
  }
  return absl::OkStatus();
}

namespace {

BubbleTheory WithIdle(Milliseconds idle, const PipelineShape& shape, const PassTimes& times,
                      std::string formula) {
  const Milliseconds work = times.passes() * static_cast<double>(shape.micro_batches);
  return {idle / (work + idle), std::move(formula)};
}

}  // namespace

BubbleTheory TheoryOfBubble(PipelineKind kind, const PipelineShape& shape, const PassTimes& times) {
  const double others = shape.stages - 1;
  switch (kind) {
    case PipelineKind::kGPipe:
    case PipelineKind::kOneForwardOneBackward:
      return WithIdle(others * times.passes(), shape, times, "(p - 1)/(m + p - 1)");
    case PipelineKind::kInterleaved:
      return WithIdle(others * times.passes() / shape.chunks, shape, times,
                      "(p - 1)/(v m + p - 1)");
    case PipelineKind::kZeroBubble:
      break;
  }
  if (shape.micro_batches < shape.stages) {
    return {std::nullopt, "only for at least as many micro-batches as stages"};
  }
  const Milliseconds one = std::max({times.forward, times.backward_input,
                                     times.forward + times.backward_input - times.backward_weight});
  const bool equal =
      times.forward == times.backward_input && times.forward == times.backward_weight;
  return WithIdle(
      others * one, shape, times,
      equal ? "(p - 1)/(3 m + p - 1)" : "T/(m (F + B + W) + T), T = (p - 1) max(F, B, F + B - W)");
}

int TheoryOfLive(PipelineKind kind, const PipelineShape& shape, int rank) {
  const int behind = shape.stages - 1 - rank;  // ranks
  switch (kind) {
    case PipelineKind::kGPipe:
      return shape.micro_batches;
    case PipelineKind::kOneForwardOneBackward:
      return std::min(shape.micro_batches, behind + 1);
    case PipelineKind::kInterleaved:
      return std::min(shape.micro_batches * shape.chunks,
                      2 * behind + (shape.chunks - 1) * shape.stages + 1);
    case PipelineKind::kZeroBubble:
      return std::min(shape.micro_batches, shape.stages);
  }
  return 0;
}

std::string FormulaOfLive(PipelineKind kind) {
  switch (kind) {
    case PipelineKind::kGPipe:
      return "m";
    case PipelineKind::kOneForwardOneBackward:
      return "min(m, p - rank)";
    case PipelineKind::kInterleaved:
      return "min(m, (2 (p - 1 - rank) + (v - 1) p + 1)/v)";
    case PipelineKind::kZeroBubble:
      return "min(m, p)";
  }
  return "";
}

}  // namespace muster::trainer
