#include "trainer/pipeline/make_schedule.h"

#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "trainer/pipeline/schedules.h"

namespace muster::trainer {
namespace {

const std::map<std::string, PipelineKind>& Kinds() {
  static const auto* const kinds =
      new std::map<std::string, PipelineKind>{{"1f1b", PipelineKind::kOneForwardOneBackward},
                                              {"gpipe", PipelineKind::kGPipe},
                                              {"interleaved", PipelineKind::kInterleaved},
                                              {"zero-bubble", PipelineKind::kZeroBubble}};
  return *kinds;
}

absl::Status Refusal(const std::string& attempt, const std::string& cause) {
  return absl::InvalidArgumentError(absl::StrCat("make ", attempt, ": ", cause));
}

// Why an interleaved schedule cannot have this shape.
absl::Status CheckInterleaved(const std::string& attempt, const PipelineShape& shape) {
  if (shape.chunks < 2) {
    return Refusal(attempt, "it needs 2 chunks or more on each rank; with 1 it would be 1f1b");
  }
  const int rest = shape.micro_batches % shape.stages;
  if (rest == 0) return absl::OkStatus();
  const int below = shape.micro_batches - rest;
  return Refusal(
      attempt, absl::StrCat("the number of micro-batches, ", shape.micro_batches,
                            ", must be a multiple of that of stages, ", shape.stages, ", such as ",
                            below > 0 ? absl::StrCat(below, " or ") : "", below + shape.stages));
}

absl::Status CheckShape(const std::string& attempt, PipelineKind kind, const PipelineShape& shape) {
  if (shape.stages < 1 || shape.chunks < 1 || shape.micro_batches < 1) {
    return Refusal(attempt,
                   absl::StrCat("stages, chunks and micro-batches must be 1 or more, and "
                                "are ",
                                shape.stages, ", ", shape.chunks, " and ", shape.micro_batches));
  }
  if (kind == PipelineKind::kInterleaved) return CheckInterleaved(attempt, shape);
  if (shape.chunks == 1) return absl::OkStatus();
  return Refusal(attempt, absl::StrCat("it has 1 chunk on each rank, not ", shape.chunks,
                                       "; only interleaved has more"));
}

RankActions ActionsOf(PipelineKind kind, const PipelineShape& shape, int rank) {
  switch (kind) {
    case PipelineKind::kGPipe:
      return GPipeActions(shape);
    case PipelineKind::kOneForwardOneBackward:
      return OneForwardOneBackwardActions(shape, rank);
    case PipelineKind::kInterleaved:
      return InterleavedActions(shape, rank);
    case PipelineKind::kZeroBubble:
      return ZeroBubbleActions(shape, rank);
  }
  return {};
}

}  // namespace

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : Kinds()) names.push_back(name);
  return names;
}

absl::StatusOr<PipelineSchedule> MakeSchedule(const std::string& name, const PipelineShape& shape) {
  const auto found = Kinds().find(name);
  if (found == Kinds().end()) {
    return Refusal("a pipeline schedule",
                   absl::StrCat("there is none with the name '", name, "'; the names are ",
                                absl::StrJoin(ScheduleNames(), ", ")));
  }
  const PipelineKind kind = found->second;
  const absl::Status fits = CheckShape(absl::StrCat("the schedule ", name), kind, shape);
  if (!fits.ok()) return fits;
  PipelineSchedule schedule{kind, shape, {}};
  for (int rank = 0; rank < shape.stages; ++rank) {
    schedule.ranks.push_back(ActionsOf(kind, shape, rank));
  }
  return schedule;
}

}  // namespace muster::trainer
