#include "launcher/top/view.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "launcher/top/rank_log.h"
#include "rendezvous/core/values/phrases.h"
#include "rendezvous/pages/job_view.h"

namespace muster::launcher {
namespace {

using rendezvous::JobSnapshot;
using rendezvous::JobState;
using rendezvous::NodeSnapshot;
using rendezvous::RoundSnapshot;
using Tone = Style::Tone;

constexpr Style kHeading{.bold = true};

// The rows of a page beside grid and pane: title, facts, the job's sentence, legend, two lines on
// the selected rank, pane names, and keys.
constexpr int kFixedRows = 8;
constexpr int kTopRows = 4;
// Rows beside the output on a rank's page: title, two lines on the rank, heading, and keys.
constexpr int kRowsBesideOutput = 5;

Tone ToneOf(JobState state) {
  return state == JobState::kRunning     ? Tone::kGood
         : state == JobState::kGathering ? Tone::kBusy
                                         : Tone::kPlain;
}

std::string HowOften(std::size_t times) {
  return times == 1 ? "once" : absl::StrCat(times, " times");
}

ScreenLine FactsLine(const JobSnapshot& job) {
  ScreenLine line = {{absl::StrCat(job.run_id, " "), kHeading}};
  for (const auto& [name, cell] : rendezvous::FactsOf(job)) {
    const bool is_state = line.size() == 1;
    const Style style{.tone = is_state ? ToneOf(job.state) : Tone::kPlain, .bold = is_state};
    line.push_back({is_state ? " " : absl::StrCat(" ", absl::AsciiStrToLower(name), " ")});
    line.push_back({absl::StrCat(rendezvous::CellText(cell), " "), style});
  }
  return line;
}

std::string NameOf(const RankCell& cell) {
  return cell.rank ? absl::StrCat("rank ", *cell.rank) : std::string("a future rank");
}

// To follow the state of its node.
std::string StepsInWords(const rendezvous::RankSnapshot* rank) {
  if (rank == nullptr) return "";
  std::string words;
  const std::vector<rendezvous::Cell> cells = rendezvous::StepCells(*rank);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string value = rendezvous::CellText(cells[i]);
    const std::string name = absl::AsciiStrToLower(rendezvous::kStepColumns[i]);
    if (!value.empty()) absl::StrAppend(&words, ", ", name, " ", value);
  }
  return words;
}

// The same for its alerts, which come first.
std::string RankAlertsInWords(const NodeSnapshot& node, int rank) {
  const std::string alerts = RankAlertsOf(node, rank);
  return alerts.empty() ? "" : absl::StrCat(", ", alerts);
}

// Adds two lines.
void AddChosenRank(const JobSnapshot& job, const JobPage& page, std::vector<ScreenLine>& lines) {
  if (page.grid.cells.empty()) {
    lines.insert(lines.end(), {{{"there are no ranks", {.tone = Tone::kFaint}}}, {}});
    return;
  }
  const RankCell& cell = page.grid.cells[static_cast<std::size_t>(page.cell)];
  const NodeSnapshot& node = job.nodes[cell.node];
  lines.push_back({{"> ", kHeading},
                   {NameOf(cell), kHeading},
                   {absl::StrCat(" on ", node.node.host, ", local rank ", cell.local_rank, ": ")},
                   {StateName(node.state), {.tone = cell.style.tone}},
                   {cell.rank ? RankAlertsInWords(node, *cell.rank) : "", {.tone = Tone::kBad}},
                   {cell.rank ? StepsInWords(StepsOf(node, *cell.rank)) : ""}});
  const auto failures =
      cell.rank ? FailuresOf(job, *cell.rank) : std::vector<const RoundSnapshot*>();
  if (failures.empty()) {
    lines.push_back({{"  has not failed in these rounds", {.tone = Tone::kFaint}}});
    return;
  }
  const RoundSnapshot& last = *failures.back();
  lines.push_back({{absl::StrCat("  has failed ", HowOften(failures.size()), ", last in round ",
                                 last.number, last.reason.empty() ? "" : ": ", last.reason),
                    {.tone = Tone::kBad}}});
}

ScreenLine PaneNames(const JobPage& page, TopState::Pane shown) {
  using enum TopState::Pane;
  ScreenLine line;
  for (const auto& [pane, name] : {std::pair{kRounds, "ROUNDS"}, std::pair{kNodes, "NODES"},
                                   std::pair{kSteps, "STEPS"}, std::pair{kOutput, "OUTPUT"}}) {
    const bool is_shown = pane == shown;
    line.push_back({is_shown ? absl::StrCat("[", name, "]") : absl::StrCat(" ", name, " "),
                    {.tone = is_shown ? Tone::kPlain : Tone::kFaint, .bold = is_shown}});
    line.push_back({" "});
  }
  line.push_back({page.pane_note, {.tone = Tone::kFaint}});
  return line;
}

std::vector<ScreenLine> PaneLines(const TopState& state, const JobSnapshot& job,
                                  const JobPage& page, int columns) {
  if (state.pane == TopState::Pane::kRounds) return TimelineLines(job, columns);
  if (state.pane == TopState::Pane::kNodes) return LinesOf(rendezvous::NodeTable(job));
  const auto cell = static_cast<std::size_t>(page.cell);
  return StepLines(job, page.grid.cells.empty() ? std::nullopt : page.grid.cells[cell].rank);
}

void AddPane(const TopState& state, const JobSnapshot& job, int columns, JobPage& page) {
  page.pane = PaneLines(state, job, page, columns);
  // The heading does not scroll.
  const int lines = static_cast<int>(page.pane.size()) - 1;
  page.pane_top = std::clamp(state.pane_top, 0, std::max(lines - page.pane_rows, 0));
  if (lines <= page.pane_rows) return;
  const int last = std::min(page.pane_top + page.pane_rows, lines);
  page.pane_note = absl::StrCat("lines ", page.pane_top + 1, " to ", last, " of ", lines,
                                ", PgUp, PgDn: others");
}

void AddOutput(const TopState& state, const JobSnapshot& job, const ScreenSize& size,
               JobPage& page) {
  if (!state.log) {
    // The line above names the rank.
    page.pane = {
        {{"no output", kHeading}},
        {{job.state == JobState::kEnded ? "the job has ended, and its ranks are gone"
                                        : "no round has started: its rank is not known yet",
          {.tone = Tone::kFaint}}}};
    return;
  }
  LogPane output = DrawLog(*state.log, state.log_top, OutputRoom(state, page, size));
  page.pane_note = std::move(output.note);
  page.pane = std::move(output.rows);
  page.pane.insert(page.pane.begin(),
                   {{absl::StrCat("OF RANK ", state.log->rank,
                                  state.log->of_round_before ? ", THE ROUND BEFORE" : ""),
                     kHeading},
                    {"   2> stderr   -- from Muster", {.tone = Tone::kFaint}}});
}

ScreenLine GridLine(const JobPage& page, int row) {
  ScreenLine line = {{page.grid.labels[static_cast<std::size_t>(row)]}};
  int column = base::Columns(line.front().text);
  for (std::size_t i = 0; i < page.grid.cells.size(); ++i) {
    const RankCell& cell = page.grid.cells[i];
    if (cell.place.row != row) continue;
    if (cell.place.column > column) {
      line.push_back({std::string(static_cast<std::size_t>(cell.place.column - column), ' ')});
    }
    Style style = cell.style;
    style.reverse = static_cast<int>(i) == page.cell;
    line.push_back({std::string(1, cell.mark), style});
    column = cell.place.column + 1;
  }
  return line;
}

}  // namespace

JobPage LayOut(const TopState& state, const JobSnapshot& job, const ScreenSize& size) {
  JobPage page;
  const int rows = std::max(size.rows - kFixedRows, 2);
  const int most = std::max(rows * 2 / 5, 1);
  page.grid = MakeRankGrid(job, size.columns, most);
  page.grid_rows = std::min(page.grid.rows(), most);
  const int last = static_cast<int>(page.grid.cells.size()) - 1;
  page.cell = std::clamp(state.cell, 0, std::max(last, 0));
  if (last >= 0 && page.grid_rows > 0) {
    const int row = page.grid.cells[static_cast<std::size_t>(page.cell)].place.row;
    page.grid_top = row / page.grid_rows * page.grid_rows;
  }
  page.pane_rows = std::max(rows - page.grid_rows - 1, 1);
  if (state.pane == TopState::Pane::kOutput) {
    AddOutput(state, job, size, page);
  } else {
    AddPane(state, job, size.columns, page);
  }
  return page;
}

ScreenSize OutputRoom(const TopState& state, const JobPage& page, const ScreenSize& size) {
  return {.columns = size.columns,
          .rows = state.place == TopState::Place::kRank ? std::max(size.rows - kRowsBesideOutput, 1)
                                                        : page.pane_rows};
}

Screen DrawJob(const TopState& state, const JobSnapshot& job, const ScreenSize& size) {
  const JobPage page = LayOut(state, job, size);
  Screen screen;
  std::vector<ScreenLine>& lines = screen.lines;
  lines = {{}, FactsLine(job), {{job.sentence}}, {{RankLegend()}}};
  const int grid_end = std::min(page.grid_top + page.grid_rows, page.grid.rows());
  for (int row = page.grid_top; row < grid_end; ++row) lines.push_back(GridLine(page, row));
  // The last page of the grid may have fewer rows.
  lines.resize(static_cast<std::size_t>(kTopRows + page.grid_rows));
  AddChosenRank(job, page, lines);
  lines.push_back(PaneNames(page, state.pane));
  lines.push_back(page.pane.front());
  const auto first = static_cast<std::size_t>(page.pane_top) + 1;
  for (std::size_t i = first; i < page.pane.size(); ++i) {
    if (i - first >= static_cast<std::size_t>(page.pane_rows)) break;
    lines.push_back(page.pane[i]);
  }
  if (!page.grid.cells.empty()) {
    const ScreenPlace place = page.grid.cells[static_cast<std::size_t>(page.cell)].place;
    screen.cursor = {.row = kTopRows + place.row - page.grid_top, .column = place.column};
  }
  return screen;
}

Screen DrawRank(const TopState& state, const JobSnapshot& job, const ScreenSize& size) {
  const JobPage page = LayOut(state, job, size);
  Screen screen;
  std::vector<ScreenLine>& lines = screen.lines;
  if (state.pane == TopState::Pane::kOutput) {
    lines = {{}};
    AddChosenRank(job, page, lines);
    lines.insert(lines.end(), page.pane.begin(), page.pane.end());
    lines[kRowsBesideOutput - 2].push_back({absl::StrCat("   ", page.pane_note)});
    return screen;
  }
  lines = {{}, FactsLine(job), {}};
  if (page.grid.cells.empty()) {
    lines.push_back({{"there are no ranks", {.tone = Tone::kFaint}}});
    return screen;
  }
  const RankCell& cell = page.grid.cells[static_cast<std::size_t>(page.cell)];
  const NodeSnapshot& node = job.nodes[cell.node];
  const auto add = [&lines](const char* name, const std::string& value, const Style& style = {}) {
    if (!value.empty()) lines.push_back({{base::PadTo(name, 14), kHeading}, {value, style}});
  };
  add("RANK", NameOf(cell));
  add("STATE",
      absl::StrCat(StateName(node.state),
                   node.state_ago ? absl::StrCat(" for ", base::Elapsed(*node.state_ago)) : ""),
      {.tone = cell.style.tone});
  add("LOCAL RANK", absl::StrCat(cell.local_rank, " of ", node.node.slots));
  add("HOST", absl::StrCat(node.node.host, " (", node.node.address, ")"));
  add("NODE", node.group_rank < 0 ? node.node.node_id
                                  : absl::StrCat(node.group_rank, " (", node.node.node_id, ")"));
  add("ROLE", node.node.role);
  const auto local = static_cast<std::size_t>(cell.local_rank);
  add("DEVICES", node.node.devices.size() == static_cast<std::size_t>(node.node.slots)
                     ? node.node.devices[local]
                     : absl::StrJoin(node.node.devices, ","));
  add("PLACE", node.rank_reason);
  if (!cell.rank) return screen;
  add("TROUBLE", RankAlertsOf(node, *cell.rank), {.tone = Tone::kBad});
  if (const rendezvous::RankSnapshot* const steps = StepsOf(node, *cell.rank)) {
    const std::vector<rendezvous::Cell> cells = rendezvous::StepCells(*steps);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      add(rendezvous::kStepColumns[i], rendezvous::CellText(cells[i]));
    }
  }
  const auto failures = FailuresOf(job, *cell.rank);
  lines.push_back({});
  lines.push_back({{failures.empty() ? "has not failed in these rounds"
                                     : absl::StrCat("has failed ", HowOften(failures.size()), ":"),
                    kHeading}});
  for (auto round = failures.rbegin(); round != failures.rend(); ++round) {
    const std::string why = (*round)->reason.empty() ? job.sentence : (*round)->reason;
    for (const std::string& part :
         Wrapped(absl::StrCat("round ", (*round)->number, ", ", base::Elapsed((*round)->opened_ago),
                              " ago: ", why),
                 size.columns - 2)) {
      lines.push_back({{"  "}, {part, {.tone = Tone::kBad}}});
    }
  }
  return screen;
}

}  // namespace muster::launcher
