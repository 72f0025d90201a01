#include "launcher/replay/text_view.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/phrases.h"
#include "base/text_table.h"
#include "launcher/replay/harmless.h"
#include "launcher/replay/incident_groups.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kMostBesides = 20;

std::string Step(Offset from, const std::optional<Offset>& to) {
  return to ? absl::StrCat("+", DurationText(*to - from)) : "";
}

std::string RoundRows(const Timeline& timeline) {
  std::vector<std::vector<std::string>> rows = {
      {"ROUND", "NODES", "RANKS", "STARTED", "RAN", "ENDED BY"}};
  for (const RoundSpan& round : timeline.rounds) {
    rows.push_back({absl::StrCat(round.number), absl::StrCat(round.nodes),
                    absl::StrCat(round.world_size), round.started ? MomentText(*round.started) : "",
                    round.started ? DurationText(round.ended - *round.started) : "", round.cause});
  }
  return base::TextTable(std::move(rows));
}

std::string RestartRows(const Timeline& timeline) {
  std::vector<std::vector<std::string>> rows = {
      {"RESTART", "DETECTED", "STOPPED", "GATHERED", "STARTED", "FIRST PROGRESS", "COST"}};
  for (const RestartCost& cost : timeline.restarts) {
    rows.push_back({absl::StrCat(cost.from, " to ", cost.to), MomentText(cost.detected),
                    Step(cost.detected, cost.stopped), Step(cost.stopped, cost.gathered),
                    Step(cost.gathered, cost.started),
                    cost.started ? Step(*cost.started, cost.progress) : "",
                    cost.Cost() ? DurationText(*cost.Cost()) : ""});
  }
  return base::TextTable(std::move(rows));
}

std::string BesidesRows(const Timeline& timeline) {
  const std::vector<Incident> besides = Besides(timeline);
  if (besides.empty()) return "";
  std::size_t left_out = 0;
  std::vector<std::vector<std::string>> rows = {{"MOMENT", "TIMES", "WHAT ELSE HAPPENED"}};
  for (const IncidentGroup& group : GroupIncidents(besides, kMostBesides, &left_out)) {
    rows.push_back({MomentText(group.at), absl::StrCat(group.count), group.what});
  }
  std::string text = absl::StrCat("\n", base::TextTable(std::move(rows)));
  if (left_out > 0) absl::StrAppend(&text, "and ", left_out, " more\n");
  return text;
}

}  // namespace

std::string MomentText(Offset at) {
  return absl::StrFormat("%.3f s", std::chrono::duration<double>(at).count());
}

std::string DurationText(Offset duration) {
  const double ms = std::chrono::duration<double, std::milli>(duration).count();
  return ms < 1000 ? absl::StrFormat("%.1f ms", ms) : absl::StrFormat("%.2f s", ms / 1000);
}

std::string OriginText(const Timeline& timeline) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%E3S UTC",
                          absl::UnixEpoch() + absl::FromChrono(timeline.origin),
                          absl::UTCTimeZone());
}

std::string GoodputText(const Timeline& timeline) {
  return absl::StrFormat("%.1f %%", 100 * timeline.Goodput());
}

std::string SizeText(const Timeline& timeline) {
  int ranks = 0;
  for (const RoundSpan& round : timeline.rounds) ranks = std::max(ranks, round.world_size);
  return absl::StrCat(base::Count(timeline.rounds.size(), "round"), ", ",
                      base::Count(timeline.nodes.size(), "node"), ", ",
                      base::Count(static_cast<std::size_t>(ranks), "rank"));
}

std::string TextView(const Timeline& timeline) {
  std::string text = absl::StrCat(
      "job ", timeline.job, ": ", SizeText(timeline), ", ", DurationText(timeline.length), " from ",
      OriginText(timeline), "\n",
      timeline.verdict.empty() ? "no log says how it ended" : timeline.verdict, "\ngoodput ",
      GoodputText(timeline), ": workers of rounds that got further ran for ",
      DurationText(timeline.useful), " of ", DurationText(timeline.length), "\n");
  if (!timeline.rounds.empty()) absl::StrAppend(&text, "\n", RoundRows(timeline));
  if (!timeline.restarts.empty()) absl::StrAppend(&text, "\n", RestartRows(timeline));
  absl::StrAppend(&text, BesidesRows(timeline));
  if (!timeline.notes.empty()) absl::StrAppend(&text, "\n");
  for (const std::string& note : timeline.notes) absl::StrAppend(&text, "note: ", note, "\n");
  return Harmless(text);
}

}  // namespace muster::launcher
