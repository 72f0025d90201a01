#include "trainer/pipeline/order_check.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "base/phrases.h"

namespace muster::trainer {
namespace {

// How far a micro-batch has come in a chunk.
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

// The action that a micro-batch which has come so far lacks.
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
      // Of a backward that is split, it is the first half that is missing.
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

}  // namespace muster::trainer
