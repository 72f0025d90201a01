// The ranks of a job as a grid of cells.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/top/screen.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/pages/job_view.h"

namespace muster::launcher {

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

// "was stopped by SIGSTOP 12 s ago", for all troubles of the rank; "" if it has none.
std::string TroublesOf(const rendezvous::NodeSnapshot& node, int rank);

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

}  // namespace muster::launcher
