#include "launcher/top/view.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "base/text.h"
#include "rendezvous/pages/job_view.h"

namespace muster::launcher {
namespace {

using rendezvous::JobSnapshot;
using rendezvous::JobState;
using rendezvous::NodeSnapshot;
using rendezvous::NodeState;
using rendezvous::RoundSnapshot;
using Tone = Style::Tone;

// A blank after this many ranks makes them easy to count.
constexpr int kGroup = 8;
constexpr int kMostHostColumns = 20;
constexpr int kRankColumns = 6;
constexpr char kFailed = '!';
constexpr char kStraggler = 'g';
constexpr char kTrouble = 't';

char MarkOf(NodeState state) {
  switch (state) {
    case NodeState::kJoined:
    case NodeState::kSpare:
      return 'w';
    case NodeState::kStarting:
      return 's';
    case NodeState::kRunning:
      return 'r';
    case NodeState::kSucceeded:
      return 'd';
    case NodeState::kStopping:
      return 'x';
  }
  return '?';
}

Tone ToneOf(NodeState state) {
  switch (state) {
    case NodeState::kRunning:
    case NodeState::kSucceeded:
      return Tone::kGood;
    case NodeState::kStarting:
    case NodeState::kStopping:
      return Tone::kBusy;
    case NodeState::kJoined:
    case NodeState::kSpare:
      break;
  }
  return Tone::kFaint;
}

// The rank that failed last, unless a later round already runs.
std::optional<int> FailedNow(const JobSnapshot& job) {
  if (job.rounds.empty()) return std::nullopt;
  const RoundSnapshot& current = job.rounds.back();
  if (current.failed_rank) return current.failed_rank;
  if (current.gathered || job.rounds.size() < 2) return std::nullopt;
  return job.rounds[job.rounds.size() - 2].failed_rank;
}

bool HasRankAlert(const NodeSnapshot& node, int rank) {
  return std::any_of(
      node.alerts.begin(), node.alerts.end(),
      [rank](const rendezvous::RankAlertSnapshot& alert) { return alert.rank == rank; });
}

std::vector<RankCell> CellsOf(const JobSnapshot& job) {
  const std::vector<std::optional<int>> firsts = rendezvous::FirstRanks(job);
  const std::optional<int> failed = FailedNow(job);
  std::set<int> failed_before;
  for (const RoundSnapshot& round : job.rounds) {
    if (round.failed_rank) failed_before.insert(*round.failed_rank);
  }
  std::vector<RankCell> cells;
  for (std::size_t i = 0; i < job.nodes.size(); ++i) {
    const NodeSnapshot& node = job.nodes[i];
    if (node.state == NodeState::kSpare) continue;
    for (int local = 0; local < node.node.slots; ++local) {
      RankCell cell{.node = i, .local_rank = local, .mark = MarkOf(node.state)};
      cell.style.tone = ToneOf(node.state);
      if (firsts[i]) {
        cell.rank = *firsts[i] + local;
        const rendezvous::RankSnapshot* const steps = StepsOf(node, *cell.rank);
        if (node.state == NodeState::kRunning && steps != nullptr && steps->straggling) {
          cell.mark = kStraggler;
          cell.style = {.tone = Tone::kBusy, .bold = true};
        }
        if (HasRankAlert(node, *cell.rank)) {
          cell.mark = kTrouble;
          cell.style = {.tone = Tone::kBad, .bold = true};
        }
        if (cell.rank == failed) {
          cell.mark = kFailed;
          cell.style = {.tone = Tone::kBad, .bold = true};
        } else if (failed_before.contains(*cell.rank)) {
          cell.mark = absl::ascii_toupper(static_cast<unsigned char>(cell.mark));
          cell.style.bold = true;
        }
      }
      cells.push_back(cell);
    }
  }
  return cells;
}

// The columns of so many ranks, with a blank after each eight.
int WidthOf(int ranks) {
  return ranks + (ranks - 1) / kGroup;
}
int RanksIn(int columns) {
  const int whole = columns / (kGroup + 1);
  return std::max(whole * kGroup + std::min(columns - whole * (kGroup + 1), kGroup), 1);
}

std::string RankText(const RankCell& cell) {
  return cell.rank ? absl::StrCat(*cell.rank) : "-";
}

std::string RightAligned(const std::string& text, int columns) {
  const int blanks = columns - base::Columns(text);
  return absl::StrCat(std::string(static_cast<std::size_t>(std::max(blanks, 0)), ' '), text);
}

// Each node gets rows of its own.
RankGrid ByNode(const JobSnapshot& job, std::vector<RankCell> cells, int columns) {
  int host_columns = 4;
  for (const NodeSnapshot& node : job.nodes) {
    host_columns =
        std::min(std::max(host_columns, base::Columns(node.node.host)), kMostHostColumns);
  }
  const int left = host_columns + 1 + kRankColumns + 2;
  const int in_row = RanksIn(columns - left);
  RankGrid grid;
  for (RankCell& cell : cells) {
    const int at = cell.local_rank % in_row;
    if (at == 0) {
      const std::string host = cell.local_rank == 0 ? job.nodes[cell.node].node.host : "";
      grid.labels.push_back(absl::StrCat(base::PadTo(host, host_columns), " ",
                                         RightAligned(RankText(cell), kRankColumns), "  "));
    }
    cell.place = {.row = grid.rows() - 1, .column = left + at + at / kGroup};
  }
  grid.cells = std::move(cells);
  return grid;
}

// Each row gets as many whole nodes as fit.
RankGrid Packed(const JobSnapshot& job, std::vector<RankCell> cells, int columns) {
  const int left = kRankColumns + 2;
  RankGrid grid;
  int column = columns;
  for (RankCell& cell : cells) {
    const bool begins = cell.local_rank == 0;
    const int slots = job.nodes[cell.node].node.slots;
    if (begins && column > left) ++column;
    if (!begins && cell.local_rank % kGroup == 0) ++column;
    const int needed = begins ? std::min(WidthOf(slots), columns - left) : 1;
    if (column + needed > columns) {
      grid.labels.push_back(absl::StrCat(RightAligned(RankText(cell), kRankColumns), "  "));
      column = left;
    }
    cell.place = {.row = grid.rows() - 1, .column = column++};
  }
  grid.cells = std::move(cells);
  return grid;
}

}  // namespace

RankGrid MakeRankGrid(const JobSnapshot& job, int columns, int most_rows) {
  std::vector<RankCell> cells = CellsOf(job);
  RankGrid grid = ByNode(job, cells, columns);
  return grid.rows() <= most_rows ? grid : Packed(job, std::move(cells), columns);
}

std::optional<int> RankOfCell(const JobSnapshot& job, int cell) {
  const std::vector<RankCell> cells = CellsOf(job);
  if (cells.empty()) return std::nullopt;
  return cells[static_cast<std::size_t>(std::clamp(cell, 0, static_cast<int>(cells.size()) - 1))]
      .rank;
}

const rendezvous::RankSnapshot* StepsOf(const NodeSnapshot& node, int rank) {
  const auto found =
      std::find_if(node.ranks.begin(), node.ranks.end(),
                   [rank](const rendezvous::RankSnapshot& told) { return told.rank == rank; });
  return found == node.ranks.end() ? nullptr : &*found;
}

std::string RankAlertsOf(const NodeSnapshot& node, int rank) {
  std::vector<std::string> alerts;
  for (const rendezvous::RankAlertSnapshot& alert : node.alerts) {
    if (alert.rank != rank) continue;
    alerts.push_back(absl::StrCat(alert.told.what, " ", base::Elapsed(alert.told.ago), " ago"));
  }
  return absl::StrJoin(alerts, ", ");
}

int NeighbourOf(const RankGrid& grid, int cell, int rows, int columns) {
  const int last = static_cast<int>(grid.cells.size()) - 1;
  if (last < 0) return 0;
  const int from = std::clamp(cell, 0, last);
  if (rows == 0) return std::clamp(from + columns, 0, last);
  const ScreenPlace here = grid.cells[static_cast<std::size_t>(from)].place;
  const int row = std::clamp(here.row + rows, 0, grid.rows() - 1);
  int nearest = from;
  int distance = -1;
  for (int i = 0; i <= last; ++i) {
    const ScreenPlace& place = grid.cells[static_cast<std::size_t>(i)].place;
    if (place.row != row) continue;
    const int off = std::abs(place.column - here.column);
    if (distance < 0 || off < distance) {
      nearest = i;
      distance = off;
    }
  }
  return nearest;
}

std::string RankLegend() {
  return "r run  g straggler  t trouble  s start  w wait  x stop  d done  ! fail  R before";
}

std::vector<const RoundSnapshot*> FailuresOf(const JobSnapshot& job, int rank) {
  std::vector<const RoundSnapshot*> failures;
  for (const RoundSnapshot& round : job.rounds) {
    if (round.failed_rank == rank) failures.push_back(&round);
  }
  return failures;
}

std::vector<ScreenLine> LinesOf(const rendezvous::Table& table, const std::string& chosen) {
  const std::vector<std::string> text =
      absl::StrSplit(rendezvous::TableText(table), '\n', absl::SkipEmpty());
  const Style heading{.bold = true};
  if (text.empty()) return {{{table.columns.front(), heading}}};
  std::vector<ScreenLine> lines = {{{absl::StrCat("  ", text.front()), heading}}};
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const rendezvous::Row& row = table.rows[i];
    const bool is_chosen = !chosen.empty() && chosen == row.cells.front().before;
    const Style style{.tone = row.stands_out ? Tone::kBusy : Tone::kPlain};
    lines.push_back({{is_chosen ? "> " : "  ", heading}, {text[i + 1], style}});
  }
  return lines;
}

std::vector<ScreenLine> StepLines(const JobSnapshot& job, std::optional<int> chosen) {
  const rendezvous::Table table = rendezvous::RankTable(job, rendezvous::kAllShown);
  if (table.rows.empty()) {
    return {{{"no rank reports its steps", {.bold = true}}},
            {{"docs/observing.md says how a worker reports them", {.tone = Tone::kFaint}}}};
  }
  return LinesOf(table, chosen ? absl::StrCat(*chosen) : "");
}

namespace {

using rendezvous::Duration;

constexpr int kBar = 18;
constexpr int kIndent = 4;

Duration GatheredOf(const RoundSnapshot& round) {
  return round.gathered.value_or(round.opened_ago);
}

// Something that took time is seen.
std::string Bar(Duration part, Duration longest, char mark) {
  if (part <= Duration::zero()) return "";
  const double share = std::chrono::duration<double>(part) / std::chrono::duration<double>(longest);
  const auto length = static_cast<int>(std::lround(share * (kBar - 2)));
  return std::string(static_cast<std::size_t>(std::max(length, 1)), mark);
}

}  // namespace

std::vector<ScreenLine> TimelineLines(const JobSnapshot& job, int columns) {
  Duration longest = std::chrono::milliseconds(1);
  for (const RoundSnapshot& round : job.rounds) {
    longest = std::max(longest, GatheredOf(round) + round.ran);
  }
  // Bars stand in place of the causes, which have lines of their own.
  rendezvous::Table table = rendezvous::RoundTable(job);
  table.columns.back() = "- gathered  = ran";
  std::vector<std::string> causes;
  for (std::size_t i = 0; i < job.rounds.size(); ++i) {
    const RoundSnapshot& round = job.rounds[i];
    rendezvous::Cell& last = table.rows[i].cells.back();
    causes.push_back(last.before);
    last = Bar(GatheredOf(round), longest, '-') + Bar(round.ran, longest, '=');
  }
  std::vector<ScreenLine> rows = LinesOf(table);
  std::vector<ScreenLine> lines = {rows.front()};
  for (std::size_t i = causes.size(); i > 0; --i) {
    lines.push_back(rows[i]);
    if (causes[i - 1].empty()) continue;
    for (const std::string& part : Wrapped("over: " + causes[i - 1], columns - kIndent)) {
      lines.push_back({{std::string(kIndent, ' ')}, {part, {.tone = Tone::kBad}}});
    }
  }
  return lines;
}

}  // namespace muster::launcher
