#include "launcher/top/timeline_lines.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/phrases.h"

namespace muster::launcher {
namespace {

using rendezvous::Duration;
using rendezvous::JobSnapshot;
using rendezvous::RoundSnapshot;
using Tone = Style::Tone;

constexpr int kRound = 7;
constexpr int kBegan = 12;
constexpr int kGathered = 10;
constexpr int kRan = 8;
constexpr int kBar = 26;
constexpr int kIndent = 7;

Duration GatheredOf(const RoundSnapshot& round) {
  return round.gathered.value_or(round.opened_ago);
}

// Something that took time is seen.
int Length(Duration part, Duration longest) {
  if (part <= Duration::zero()) return 0;
  const double share = std::chrono::duration<double>(part) / std::chrono::duration<double>(longest);
  return std::max(static_cast<int>(std::lround(share * (kBar - 2))), 1);
}

ScreenLine LineOf(const RoundSnapshot& round, Duration longest) {
  const std::string gathered(static_cast<std::size_t>(Length(GatheredOf(round), longest)), '-');
  const std::string ran(static_cast<std::size_t>(Length(round.ran, longest)), '=');
  const bool has_run = round.gathered.has_value();
  const Style bar{.tone = round.end ? Tone::kPlain : has_run ? Tone::kGood : Tone::kBusy};
  const int bar_columns = static_cast<int>(gathered.size() + ran.size());
  return {{PadTo(absl::StrCat(round.number), kRound)},
          {PadTo(absl::StrCat(base::Seconds(round.opened_ago), " ago"), kBegan)},
          {PadTo(base::Seconds(GatheredOf(round)), kGathered)},
          {PadTo(has_run ? base::Seconds(round.ran) : "-", kRan)},
          {gathered, {.tone = Tone::kBusy}},
          {ran, bar},
          {std::string(static_cast<std::size_t>(std::max(kBar - bar_columns, 0)), ' ')},
          {has_run ? absl::StrCat(base::Count(static_cast<std::size_t>(round.workers), "rank"),
                                  ", ", base::Count(static_cast<std::size_t>(round.nodes), "node"))
                   : "gathering"}};
}

}  // namespace

std::vector<ScreenLine> TimelineLines(const JobSnapshot& job, int columns) {
  Duration longest = std::chrono::milliseconds(1);
  for (const RoundSnapshot& round : job.rounds) {
    longest = std::max(longest, GatheredOf(round) + round.ran);
  }
  const Style heading{.bold = true};
  std::vector<ScreenLine> lines = {{{PadTo("ROUND", kRound), heading},
                                    {PadTo("BEGAN", kBegan), heading},
                                    {PadTo("GATHERED", kGathered), heading},
                                    {PadTo("RAN", kRan), heading},
                                    {PadTo("- gathered  = ran", kBar), heading},
                                    {"RANKS", heading}}};
  for (auto round = job.rounds.rbegin(); round != job.rounds.rend(); ++round) {
    lines.push_back(LineOf(*round, longest));
    if (!round->end) continue;
    for (const std::string& part :
         Wrapped(absl::StrCat("over: ", round->reason), columns - kIndent)) {
      lines.push_back({{std::string(kIndent, ' ')}, {part, {.tone = Tone::kBad}}});
    }
  }
  return lines;
}

}  // namespace muster::launcher
