#include "trainer/pipeline/pipeline_schedule.h"

#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

const char* NameOfPass(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return "forward";
    case ActionKind::kBackward:
      return "backward";
    case ActionKind::kBackwardInput:
      return "backward of inputs";
    case ActionKind::kBackwardWeight:
      return "backward of weights";
  }
  return "";
}

}  // namespace

std::size_t PipelineSchedule::size() const {
  std::size_t all = 0;
  for (const RankActions& actions : ranks) all += actions.size();
  return all;
}

char LetterOf(ActionKind kind) {
  if (kind == ActionKind::kForward) return 'F';
  return kind == ActionKind::kBackwardWeight ? 'W' : 'B';
}

std::string PhraseOf(const PipelineAction& action, const PipelineShape& shape) {
  return absl::StrCat("the ", NameOfPass(action.kind), " of micro-batch ", action.micro_batch,
                      shape.chunks > 1 ? absl::StrCat(" in chunk ", action.chunk) : "");
}

}  // namespace muster::trainer
