#include "trainer/pipeline/schedules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

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

namespace {

// Appends passes of one kind in the order of micro-batches.
class InTurn {
 public:
  InTurn(ActionKind kind, RankActions& actions) : kind_(kind), actions_(actions) {}

  void Next() { actions_.push_back({kind_, /*chunk=*/0, count_++}); }
  int count() const { return count_; }

 private:
  const ActionKind kind_;
  RankActions& actions_;
  int count_ = 0;
};

}  // namespace

RankActions GPipeActions(const PipelineShape& shape) {
  RankActions actions;
  InTurn forward(ActionKind::kForward, actions);
  InTurn backward(ActionKind::kBackward, actions);
  while (forward.count() < shape.micro_batches) forward.Next();
  while (backward.count() < shape.micro_batches) backward.Next();
  return actions;
}

RankActions OneForwardOneBackwardActions(const PipelineShape& shape, int rank) {
  RankActions actions;
  InTurn forward(ActionKind::kForward, actions);
  InTurn backward(ActionKind::kBackward, actions);
  const int ahead = std::min(shape.micro_batches, shape.stages - 1 - rank);
  while (forward.count() < ahead) forward.Next();
  while (backward.count() < shape.micro_batches) {
    if (forward.count() < shape.micro_batches) forward.Next();
    backward.Next();
  }
  return actions;
}

RankActions InterleavedActions(const PipelineShape& shape, int rank) {
  const int all = shape.micro_batches * shape.chunks;
  const int group = shape.stages * shape.chunks;
  // Pass number `pass`: a group of `stages` micro-batches goes through one chunk, then through the
  // next; after the last chunk comes the next group.
  const auto action = [&](ActionKind kind, int pass) {
    const int chunk = pass % group / shape.stages;
    return PipelineAction{kind, kind == ActionKind::kForward ? chunk : shape.chunks - 1 - chunk,
                          pass / group * shape.stages + pass % shape.stages};
  };
  const int ahead =
      std::min(all, 2 * (shape.stages - 1 - rank) + (shape.chunks - 1) * shape.stages);
  RankActions actions;
  int forwards = 0;
  while (forwards < ahead) actions.push_back(action(ActionKind::kForward, forwards++));
  for (int backwards = 0; backwards < all; ++backwards) {
    if (forwards < all) actions.push_back(action(ActionKind::kForward, forwards++));
    actions.push_back(action(ActionKind::kBackward, backwards));
  }
  return actions;
}

RankActions ZeroBubbleActions(const PipelineShape& shape, int rank) {
  RankActions actions;
  InTurn forward(ActionKind::kForward, actions);
  InTurn input(ActionKind::kBackwardInput, actions);
  InTurn weight(ActionKind::kBackwardWeight, actions);
  const int ahead = std::min(shape.micro_batches, shape.stages - 1 - rank);
  while (forward.count() < ahead) forward.Next();
  while (input.count() < shape.micro_batches) {
    if (forward.count() < shape.micro_batches) forward.Next();
    input.Next();
    if (input.count() > rank) weight.Next();
  }
  while (weight.count() < shape.micro_batches) weight.Next();
  return actions;
}

RankActions ForwardActions(const PipelineShape& shape) {
  RankActions actions;
  for (int first = 0; first < shape.micro_batches; first += shape.stages) {
    const int end = std::min(first + shape.stages, shape.micro_batches);
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      for (int i = first; i < end; ++i) actions.push_back({ActionKind::kForward, chunk, i});
    }
  }
  return actions;
}

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-9;  // relative: sums of the same costs in another order

// The best cuts, by some measure, of the first n stages into k parts; `At(k, n)` is the first stage
// of the last part.
class BestCuts {
 public:
  // `join(measure of the parts before, cost of the last part)` is the measure of all; it must be
  // monotonic in both.
  template <typename Join>
  BestCuts(const std::vector<double>& sums, std::size_t parts, const Join& join)
      : stages_(sums.size() - 1),
        measures_((parts + 1) * (stages_ + 1), kNever),
        begins_(measures_.size(), 0) {
    Measure(0, 0) = 0;
    for (std::size_t k = 1; k <= parts; ++k) {
      for (std::size_t n = k; n <= stages_; ++n) {
        for (std::size_t begin = k - 1; begin < n; ++begin) {
          const double with = join(Measure(k - 1, begin), sums[n] - sums[begin]);
          if (!(with < Measure(k, n) * (1 - kRounding))) continue;
          Measure(k, n) = with;
          begins_[k * (stages_ + 1) + n] = begin;
        }
      }
    }
  }

  double& Measure(std::size_t parts, std::size_t stages) {
    return measures_[parts * (stages_ + 1) + stages];
  }

  std::vector<std::size_t> Begins(std::size_t parts) const {
    std::vector<std::size_t> begins(parts);
    std::size_t end = stages_;
    for (std::size_t k = parts; k > 0; --k) {
      end = begins_[k * (stages_ + 1) + end];
      begins[k - 1] = end;
    }
    return begins;
  }

 private:
  const std::size_t stages_;
  std::vector<double> measures_;
  std::vector<std::size_t> begins_;
};

}  // namespace

absl::StatusOr<std::vector<std::size_t>> CutEvenly(const std::vector<double>& costs, int parts) {
  if (parts < 1 || static_cast<std::size_t>(parts) > costs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cut a model of ", costs.size(), costs.size() == 1 ? " stage" : " stages", " into ", parts,
        parts == 1 ? " part" : " parts", ": there can be 1 to as many as it has stages"));
  }
  std::vector<double> sums = {0};
  for (const double cost : costs) {
    if (!(cost >= 0) || std::isinf(cost)) {
      return absl::InvalidArgumentError(
          absl::StrCat("cut a model: stage ", sums.size() - 1, " cannot cost ", cost));
    }
    sums.push_back(sums.back() + cost);
  }
  const auto count = static_cast<std::size_t>(parts);
  BestCuts cheapest(sums, count, [](double before, double last) { return std::max(before, last); });
  const double most = cheapest.Measure(count, costs.size()) * (1 + kRounding);
  return BestCuts(sums, count,
                  [most](double before, double last) {
                    return last > most ? kNever : before + last * last;
                  })
      .Begins(count);
}

absl::StatusOr<std::vector<std::size_t>> CutAt(const std::vector<std::string>& stages,
                                               const std::vector<std::string>& begins) {
  std::vector<std::size_t> cut = {0};
  for (const std::string& name : begins) {
    const auto found = absl::c_find(stages, name);
    if (found == stages.end()) {
      return absl::InvalidArgumentError(absl::StrCat("begin a part with the stage '", name,
                                                     "': there is none; the stages are ",
                                                     absl::StrJoin(stages, ", ")));
    }
    const auto stage = static_cast<std::size_t>(found - stages.begin());
    if (stage <= cut.back()) {
      return absl::InvalidArgumentError(
          absl::StrCat("begin part ", cut.size(), " with the stage '", name, "': part ",
                       cut.size() - 1, " begins with '", stages[cut.back()], "', which ",
                       stage == cut.back() ? "is the same" : "comes later"));
    }
    cut.push_back(stage);
  }
  return cut;
}

}  // namespace muster::trainer
