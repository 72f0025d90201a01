#include "trainer/app/commands.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "base/text.h"
#include "trainer/app/options/command_flags.h"
#include "trainer/io/formats/files.h"
#include "trainer/pipeline/schedules.h"
#include "trainer/pipeline/simulation.h"
#include "trainer/pipeline/timeline.h"

namespace muster::trainer {
namespace {

// In a picture; more make viewers slow.
constexpr std::size_t kMostBoxes = 50'000;
constexpr double kLongestPass = 1e6;  // milliseconds

struct AskedSchedule {
  std::string name = "1f1b";
  int stages = 4;
  int chunks = 0;  // 0: not given
  int micro_batches = 8;
  double forward = 1;  // milliseconds, as are the following
  double backward = 1;
  double weight = 1;
  double message = 0;
  std::string svg;
  std::string help;

  PipelineShape shape() const {
    const int usual = name == "interleaved" ? 2 : 1;
    return {stages, chunks == 0 ? usual : chunks, micro_batches};
  }
  PassTimes times() const {
    return {Milliseconds(forward), Milliseconds(backward), Milliseconds(weight),
            Milliseconds(message)};
  }
};

absl::StatusOr<AskedSchedule> ParseSchedule(int argc, const char* const* argv) {
  AskedSchedule asked;
  CLI::App app(
      "Shows how the ranks of a pipeline take turns: what each does when, how long it idles, and "
      "how many\nmicro-batches it holds. Nothing is trained; times come from the flags.",
      "muster-train schedule");
  const FlagGroup group(app, "Options");
  std::map<std::string, std::string> names;
  for (const std::string& name : ScheduleNames()) names.emplace(name, name);
  group.Choice("--schedule", asked.name, names, "The order in which ranks work");
  group.Number("--stages", asked.stages, 1, 256, "Ranks, each with an equal part of the model");
  group.Number("--micro-batches", asked.micro_batches, 1, 1024, "Parts of a batch");
  group.Number("--chunks", asked.chunks, 0, 16,
               "Parts of the model on each rank; 0: 2 with interleaved, else 1");
  group.Number("--forward", asked.forward, 0.001, kLongestPass,
               "Milliseconds that a rank takes for the forward of a micro-batch, with all its "
               "chunks");
  group.Number("--backward", asked.backward, 0.001, kLongestPass,
               "The same for the gradients of inputs");
  group.Number("--weight", asked.weight, 0.001, kLongestPass,
               "The same for the gradients of weights; only zero-bubble computes them apart");
  group.Number("--message", asked.message, 0.0, kLongestPass,
               "Milliseconds from one rank to the next");
  group.Path("--svg", asked.svg, "Draw the schedule as a picture into this file");
  const absl::Status parsed = ParseCommand(app, argc, argv, asked.help);
  if (!parsed.ok()) return parsed;
  return asked;
}

std::string CountOf(int n, const std::string& one, const std::string& many) {
  return absl::StrCat(n, " ", n == 1 ? one : many);
}

// "1f1b: 4 stages, 8 micro-batches".
std::string TitleOf(const AskedSchedule& asked) {
  const PipelineShape shape = asked.shape();
  return absl::StrCat(asked.name, ": ", CountOf(shape.stages, "stage", "stages"),
                      shape.chunks > 1 ? absl::StrCat(" of ", shape.chunks, " chunks") : "", ", ",
                      CountOf(shape.micro_batches, "micro-batch", "micro-batches"));
}

// "forward 1 ms, backward 2 ms".
std::string TimesOf(const AskedSchedule& asked, bool split) {
  const std::string backward =
      split ? absl::StrFormat("backward of inputs %.6g ms, of weights %.6g ms", asked.backward,
                              asked.weight)
            : absl::StrFormat("backward %.6g ms", asked.backward + asked.weight);
  return absl::StrCat(absl::StrFormat("forward %.6g ms, ", asked.forward), backward,
                      asked.message > 0 ? absl::StrFormat(", message %.6g ms", asked.message) : "");
}

std::string Percent(double share) {
  return absl::StrFormat("%.1f %%", 100 * share);
}

// "4, 3, 2, 1": what each rank holds, in whole micro-batches; a chunk counts as its fraction of
// one.
std::string LiveOf(const std::vector<int>& live, int chunks) {
  std::vector<std::string> each;
  for (const int count : live) {
    each.push_back(absl::StrFormat("%.4g", static_cast<double>(count) / chunks));
  }
  return base::ShortList(each);
}

// The schedule's simulated and theoretical cost.
std::string CostsOf(const PipelineSchedule& schedule, const PassTimes& times,
                    const PipelineTimeline& timeline) {
  const PipelineShape& shape = schedule.shape;
  std::vector<int> live;
  std::vector<int> live_in_theory;
  for (int rank = 0; rank < shape.stages; ++rank) {
    live.push_back(timeline.ranks[static_cast<std::size_t>(rank)].most_live);
    live_in_theory.push_back(TheoryOfLive(schedule.kind, shape, rank));
  }
  const BubbleTheory bubble = TheoryOfBubble(schedule.kind, shape, times);
  const std::string in_theory = bubble.share ? absl::StrCat(Percent(*bubble.share), " = ") : "";
  const std::string simulated = LiveOf(live, shape.chunks);
  const int width = static_cast<int>(std::max<std::size_t>(simulated.size(), 9));
  std::string text = absl::StrFormat("step       %.6g ms, %.6g ms of work on each rank\n",
                                     timeline.step.count(), timeline.ranks.front().busy.count());
  absl::StrAppend(&text,
                  absl::StrFormat("           %-*s   theory%s\n", width, "simulated",
                                  times.message > Milliseconds(0) ? ", without messages" : ""));
  absl::StrAppend(&text, absl::StrFormat("bubble     %-*s   %s%s\n", width,
                                         Percent(timeline.bubble), in_theory, bubble.formula));
  absl::StrAppend(
      &text,
      absl::StrFormat("most live  %-*s   %s = %s\n", width, simulated,
                      LiveOf(live_in_theory, shape.chunks), FormulaOfLive(schedule.kind)),
      "p stages, v chunks, m micro-batches; live are those that a rank has gone forward "
      "with and not yet\nbackward, the most of each rank\n");
  return text;
}

// The file for the picture of `schedule`, if requested.
absl::StatusOr<std::unique_ptr<DurableFile>> FileFor(const PipelineSchedule& schedule,
                                                     const std::string& path) {
  if (path.empty()) return nullptr;
  if (schedule.size() <= kMostBoxes) return DurableFile::Create(path);
  return absl::InvalidArgumentError(absl::StrCat("draw ", path, ": the step has ", schedule.size(),
                                                 " actions, and a picture can have ", kMostBoxes,
                                                 "; take fewer stages, chunks or micro-batches"));
}

}  // namespace

absl::StatusOr<int> RunSchedule(int argc, const char* const* argv, int width, std::ostream& out) {
  const absl::StatusOr<AskedSchedule> asked = ParseSchedule(argc, argv);
  if (!asked.ok()) return asked.status();
  if (!asked->help.empty()) {
    out << asked->help;
    return 0;
  }
  const absl::StatusOr<PipelineSchedule> schedule = MakeSchedule(asked->name, asked->shape());
  if (!schedule.ok()) return schedule.status();
  const auto file = FileFor(*schedule, asked->svg);
  if (!file.ok()) return file.status();
  const auto timeline = Simulate(*schedule, asked->times());
  if (!timeline.ok()) return timeline.status();
  const bool split = schedule->kind == PipelineKind::kZeroBubble;
  const std::string title = TitleOf(*asked);
  out << title << "; " << TimesOf(*asked, split) << "\n\n"
      << TimelineText(*timeline, width) << "\n"
      << (split ? "F forward, B backward of inputs, W backward of weights, blank: the bubble"
                : "F forward, B backward, blank: the bubble")
      << "; numbers are micro-batches"
      << (schedule->shape.chunks > 1 ? ", letters behind them chunks" : "") << "\n\n"
      << CostsOf(*schedule, asked->times(), *timeline);
  if (*file == nullptr) return 0;
  const std::string picture =
      TimelineSvg(*timeline, absl::StrCat(title, "; bubble ", Percent(timeline->bubble)));
  absl::Status written = (*file)->Append(picture);
  if (written.ok()) written = (*file)->Commit();
  if (!written.ok()) return written;
  out << "picture    " << asked->svg << "\n";
  return 0;
}

}  // namespace muster::trainer
