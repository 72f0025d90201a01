// The screen of `muster top`, its keys, and the parts of it: the job, its ranks and its panes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/top/screen.h"
#include "launcher/top/state.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/core/values/types.h"
#include "rendezvous/pages/job_view.h"

namespace muster::launcher {

// The smallest usable terminal.
inline constexpr ScreenSize kSmallest{.columns = 40, .rows = 12};

// The whole screen at that time, within `size`.
Screen DrawTop(const TopState& state, const ScreenSize& size, rendezvous::TimePoint now);

// How many jobs the list shows at once.
int JobRows(const ScreenSize& size);

// The effect of keys in `muster top`.

// Moves the selection or the view, with the layout of a screen of that size. True if the user
// quits.
bool PressKey(TopState& state, const Key& key, const ScreenSize& size);

// The ranks of a job as a grid of cells.

// One rank: a character and, where there are colours, a colour. The character is that of its node's
// state, or a 'g' if it runs and is a straggler, a 't' if something is wrong with it, and a capital
// if this rank has failed in an earlier round.
struct RankCell {
  // Index in job.nodes.
  std::size_t node = 0;
  int local_rank = 0;
  // nullopt before the round starts, or if the rank cannot be determined.
  std::optional<int> rank;
  char mark = ' ';
  Style style{};
  // A row of the grid, and a column of the screen.
  ScreenPlace place{};
};

struct RankGrid {
  // Sorted by node, then local rank. Spares have none.
  std::vector<RankCell> cells;
  // The start of each row: a host and its first rank or, where nodes share rows, the first rank.
  std::vector<std::string> labels;

  int rows() const { return static_cast<int>(labels.size()); }
};

// The grid for a screen of `columns`. Each node has rows of its own if that takes at most
// `most_rows`.
RankGrid MakeRankGrid(const rendezvous::JobSnapshot& job, int columns, int most_rows);

// The rank of a cell, for any screen size; an index beyond the last cell means the last. nullopt:
// as RankCell::rank, or there are no cells.
std::optional<int> RankOfCell(const rendezvous::JobSnapshot& job, int cell);

// The rank's last report of its steps; null if there is none.
const rendezvous::RankSnapshot* StepsOf(const rendezvous::NodeSnapshot& node, int rank);

// "was stopped by SIGSTOP 12 s ago", for all alerts of the rank; "" if it has none.
std::string RankAlertsOf(const rendezvous::NodeSnapshot& node, int rank);

// The cell `rows` below and `columns` to the right of a cell, or the nearest one.
int NeighbourOf(const RankGrid& grid, int cell, int rows, int columns);

// "r run", ... for each character in use.
std::string RankLegend();

// The rounds in which this rank was the first to fail, in order.
std::vector<const rendezvous::RoundSnapshot*> FailuresOf(const rendezvous::JobSnapshot& job,
                                                         int rank);

// The progress of a job's ranks as lines.

// A line of headings and one for each row, of which the one with `chosen` in its first cell has a
// '>'.
std::vector<ScreenLine> LinesOf(const rendezvous::Table& table, const std::string& chosen = "");

// Those of all ranks that tell of their steps; or two lines, which say that none does.
std::vector<ScreenLine> StepLines(const rendezvous::JobSnapshot& job, std::optional<int> chosen);

// The rounds of a job as lines: when each began, what it cost, and why it is over.

// As of a table, the latest round first, with a bar for each, '-' for the time that it gathered and
// '=' for the time that it ran, and lines with why it is over.
std::vector<ScreenLine> TimelineLines(const rendezvous::JobSnapshot& job, int columns);

// The layout of one job's page.

// From the top: facts about the job, its ranks, the selected rank, and a pane with its rounds, its
// nodes, its ranks' steps, or the selected rank's output. The grid takes the rows it needs, up to
// two fifths of those shared with the pane, and shows one page: that of the selected rank.
struct JobPage {
  RankGrid grid;
  // Index of the selected one of grid.cells, if there are any.
  int cell = 0;
  // The first visible row of the grid, and the number of visible rows.
  int grid_top = 0;
  int grid_rows = 0;
  std::vector<ScreenLine> pane;
  // The first visible line of the pane after its heading, and how many fit. Of a rank's output the
  // pane contains only the visible part.
  int pane_top = 0;
  int pane_rows = 0;
  // Which part of the pane is visible, and how to scroll.
  std::string pane_note;
};

JobPage LayOut(const TopState& state, const rendezvous::JobSnapshot& job, const ScreenSize& size);

// The lines from the first row to the last but one, and the cursor.
Screen DrawJob(const TopState& state, const rendezvous::JobSnapshot& job, const ScreenSize& size);

// The visible size of a rank's output.
ScreenSize OutputRoom(const TopState& state, const JobPage& page, const ScreenSize& size);

// The same for the selected rank: all facts about it, or its output.
Screen DrawRank(const TopState& state, const rendezvous::JobSnapshot& job, const ScreenSize& size);

}  // namespace muster::launcher
