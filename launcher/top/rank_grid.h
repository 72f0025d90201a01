// The ranks of a job as a grid: a cell for each, where it stands, and what it shows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/terminal/screen.h"
#include "rendezvous/core/snapshot.h"

namespace muster::launcher {

// One rank: a character and, where there are colours, a colour. The character is that of its node's
// state, or a 'b' if it runs and is a straggler, a 't' if something is wrong with it, and a capital
// if this rank has failed in an earlier round.
struct RankCell {
  // Of job.nodes.
  std::size_t node = 0;
  int local_rank = 0;
  // nullopt: there are no ranks before the round starts, or it cannot be told which one this is.
  std::optional<int> rank;
  char mark = ' ';
  Style style{};
  // Where it is: a row of the grid, and a column of the screen.
  ScreenPlace place{};
};

struct RankGrid {
  // By node, and by local rank on each. Spares have none.
  std::vector<RankCell> cells;
  // What stands at the beginning of each row: a host and the first of its ranks or, where nodes
  // share rows, the first rank.
  std::vector<std::string> labels;

  int rows() const { return static_cast<int>(labels.size()); }
};

// For a screen of so many columns. A node has rows of its own as long as that takes no more than
// `most_rows`.
RankGrid MakeRankGrid(const rendezvous::JobSnapshot& job, int columns, int most_rows);

// The rank of a cell of it, whatever its size; nullopt: as RankCell::rank, or there are no cells.
// The nearest one, if there are not so many.
std::optional<int> RankOfCell(const rendezvous::JobSnapshot& job, int cell);

// What the rank has told of its steps; null: nothing.
const rendezvous::RankSnapshot* StepsOf(const rendezvous::NodeSnapshot& node, int rank);

// "was stopped by SIGSTOP 12 s ago", for each thing that is wrong with the rank; "" if nothing is.
std::string TroublesOf(const rendezvous::NodeSnapshot& node, int rank);

// The cells above, below, left and right of a cell: `rows` and `columns` away. The nearest there
// is.
int NeighbourOf(const RankGrid& grid, int cell, int rows, int columns);

// "r run", ... for each character that there is.
std::string RankLegend();

// The rounds in which this rank was the first to fail, in their order.
std::vector<const rendezvous::RoundSnapshot*> FailuresOf(const rendezvous::JobSnapshot& job,
                                                         int rank);

}  // namespace muster::launcher
