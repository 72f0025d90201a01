// The layout of one job's page.
#pragma once

#include <string>
#include <vector>

#include "launcher/top/job_panes.h"
#include "launcher/top/screen.h"
#include "launcher/top/state.h"

namespace muster::launcher {

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
