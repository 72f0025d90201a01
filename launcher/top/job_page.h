// One job on the screen: where its parts are, and what is in them.
#pragma once

#include <string>
#include <vector>

#include "launcher/terminal/screen.h"
#include "launcher/top/rank_grid.h"
#include "launcher/top/state.h"

namespace muster::launcher {

// From above: what is known of it, its ranks, the chosen one of them, and a pane with its rounds or
// its nodes, its ranks' steps, or what the chosen rank prints. The grid takes what it needs, at
// most two fifths of what is left for the two, and is shown a page at a time: the one with the
// chosen rank.
struct JobPage {
  RankGrid grid;
  // The chosen one of grid.cells, if there is any.
  int cell = 0;
  // The first row of the grid that is shown, and how many are.
  int grid_top = 0;
  int grid_rows = 0;
  std::vector<ScreenLine> pane;
  // The first line of the pane that is shown, behind its headings, and how many can be. Of what a
  // rank prints the pane has what is shown and no more.
  int pane_top = 0;
  int pane_rows = 0;
  // Which part of the pane is shown, and how to see others.
  std::string pane_note;
};

JobPage LayOut(const TopState& state, const rendezvous::JobSnapshot& job, const ScreenSize& size);

// Its lines, from the first row to the last but one, and where its cursor is.
Screen DrawJob(const TopState& state, const rendezvous::JobSnapshot& job, const ScreenSize& size);

// How much of what a rank prints is seen at once.
ScreenSize OutputRoom(const TopState& state, const JobPage& page, const ScreenSize& size);

// All that is known of the chosen rank, or what it prints; as above.
Screen DrawRank(const TopState& state, const rendezvous::JobSnapshot& job, const ScreenSize& size);

}  // namespace muster::launcher
