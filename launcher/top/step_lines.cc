#include "launcher/top/step_lines.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text_table.h"
#include "launcher/commands/job_view.h"

namespace muster::launcher {
namespace {

using rendezvous::JobSnapshot;
using rendezvous::NodeSnapshot;
using rendezvous::RankSnapshot;
using Tone = Style::Tone;

}  // namespace

std::vector<ScreenLine> StepLines(const JobSnapshot& job, std::optional<int> chosen) {
  std::vector<const RankSnapshot*> ranks;
  // On a screen of 80 columns the last ones are cut off.
  std::vector<std::vector<std::string>> rows = {
      {"RANK", "STEP", "LOSS", "BEHIND", "STEP TIME", "SAMPLES/S", "BEAT", "PHASES"}};
  for (const NodeSnapshot& node : job.nodes) {
    for (const RankSnapshot& rank : node.ranks) {
      const RankWords words = InWords(rank);
      ranks.push_back(&rank);
      rows.push_back({absl::StrCat(rank.rank), words.step, words.loss, words.straggler,
                      words.step_time, words.samples_per_second, words.beat, words.phases});
    }
  }
  const Style heading{.bold = true};
  if (ranks.empty()) {
    return {{{"no rank tells of its steps", heading}},
            {{"docs/observing.md says how a worker tells of them", {.tone = Tone::kFaint}}}};
  }
  const std::vector<std::string> table =
      absl::StrSplit(base::TextTable(std::move(rows)), '\n', absl::SkipEmpty());
  std::vector<ScreenLine> lines = {{{absl::StrCat("  ", table.front()), heading}}};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Style style{.tone = ranks[i]->straggling ? Tone::kBusy : Tone::kPlain};
    lines.push_back({{chosen == ranks[i]->rank ? "> " : "  ", heading}, {table[i + 1], style}});
  }
  return lines;
}

}  // namespace muster::launcher
