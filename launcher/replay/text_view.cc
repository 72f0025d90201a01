#include "launcher/replay/views.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

#include "base/safe_text.h"
#include "base/text.h"
#include "launcher/replay/timeline.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kMostBesides = 20;

// A table with more than twice as many rows shows only the first and last ones; the page shows all.
constexpr std::size_t kRowsAtEachEnd = 10;

std::string Step(Offset from, const std::optional<Offset>& to) {
  return to ? absl::StrCat("+", base::Measured(*to - from)) : "";
}

// Begins with an empty line; "" without rows.
std::string TextOf(ReplayTable table) {
  auto& rows = table.rows;
  if (rows.empty()) return "";
  std::string more = table.left_out > 0 ? absl::StrCat("and ", table.left_out, " more\n") : "";
  if (const std::size_t count = rows.size(); count > 2 * kRowsAtEachEnd) {
    rows.erase(rows.begin() + kRowsAtEachEnd, rows.end() - kRowsAtEachEnd);
    rows.insert(rows.begin() + kRowsAtEachEnd,
                std::vector<std::string>(table.columns.size(), "..."));
    more =
        absl::StrCat("and ", count - 2 * kRowsAtEachEnd, " more between them; --html shows all\n");
  }
  rows.insert(rows.begin(), std::move(table.columns));
  return absl::StrCat("\n", base::TextTable(std::move(rows)), more);
}

}  // namespace

ReplayTable RoundsOf(const Timeline& timeline) {
  ReplayTable table{"Rounds", {"ROUND", "NODES", "RANKS", "STARTED", "RAN", "ENDED BY"}};
  for (const RoundSpan& round : timeline.rounds) {
    table.rows.push_back(
        {absl::StrCat(round.number), absl::StrCat(round.nodes), absl::StrCat(round.world_size),
         round.started ? MomentText(*round.started) : "",
         round.started ? base::Measured(round.ended - *round.started) : "", round.cause});
  }
  return table;
}

ReplayTable RestartsOf(const Timeline& timeline) {
  ReplayTable table{
      "Cost of each restart",
      {"RESTART", "DETECTED", "STOPPED", "GATHERED", "STARTED", "FIRST PROGRESS", "COST"}};
  for (const RestartCost& cost : timeline.restarts) {
    table.rows.push_back({absl::StrCat(cost.from, " to ", cost.to), MomentText(cost.detected),
                          Step(cost.detected, cost.stopped), Step(cost.stopped, cost.gathered),
                          Step(cost.gathered, cost.started),
                          cost.started ? Step(*cost.started, cost.progress) : "",
                          cost.Cost() ? base::Measured(*cost.Cost()) : ""});
  }
  return table;
}

ReplayTable BesidesOf(const Timeline& timeline, std::size_t most) {
  ReplayTable table{"What else happened", {"MOMENT", "TIMES", "WHAT ELSE HAPPENED"}};
  for (const IncidentGroup& group : GroupIncidents(Besides(timeline), most, &table.left_out)) {
    table.rows.push_back({MomentText(group.at), absl::StrCat(group.count), group.what});
  }
  return table;
}

std::string MomentText(Offset at) {
  return absl::StrFormat("%.3f s", std::chrono::duration<double>(at).count());
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
      "job ", timeline.job, ": ", SizeText(timeline), ", ", base::Measured(timeline.length),
      " from ", OriginText(timeline), "\n",
      timeline.verdict.empty() ? "the logs do not say how it ended" : timeline.verdict,
      "\ngoodput ", GoodputText(timeline), ": workers of rounds that got further ran for ",
      base::Measured(timeline.useful), " of ", base::Measured(timeline.length), "\n");
  absl::StrAppend(&text, TextOf(RoundsOf(timeline)), TextOf(RestartsOf(timeline)),
                  TextOf(BesidesOf(timeline, kMostBesides)));
  if (!timeline.notes.empty()) absl::StrAppend(&text, "\n");
  for (const std::string& note : timeline.notes) absl::StrAppend(&text, "note: ", note, "\n");
  return base::SafeText(text);
}

std::vector<Incident> Besides(const Timeline& timeline) {
  std::vector<Incident> besides;
  for (const Incident& incident : timeline.incidents) {
    const bool is_follow_up = incident.kind == AgentEventKind::kEvidence;
    if (!EndsRound(incident.kind) && !is_follow_up) besides.push_back(incident);
  }
  return besides;
}

std::vector<IncidentGroup> GroupIncidents(const std::vector<Incident>& incidents, std::size_t most,
                                          std::size_t* left_out) {
  std::vector<IncidentGroup> groups;
  std::unordered_map<std::string, std::size_t> latest;  // by words
  std::size_t left = 0;
  for (const Incident& incident : incidents) {
    const auto found = latest.find(incident.what);
    if (found != latest.end() &&
        incident.at - groups[found->second].at <= std::chrono::seconds(1)) {
      ++groups[found->second].count;
    } else if (groups.size() < most) {
      latest[incident.what] = groups.size();
      groups.push_back({.at = incident.at,
                        .what = incident.what,
                        .count = 1,
                        .node = incident.node,
                        .rank = incident.rank});
    } else {
      ++left;
    }
  }
  if (left_out != nullptr) *left_out = left;
  return groups;
}

}  // namespace muster::launcher
