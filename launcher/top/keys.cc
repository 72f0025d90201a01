#include "launcher/top/keys.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "launcher/top/job_page.h"
#include "launcher/top/log_pane.h"
#include "launcher/top/view.h"

namespace muster::launcher {
namespace {

using rendezvous::JobSnapshot;
using Kind = Key::Kind;
using Place = TopState::Place;
using Pane = TopState::Pane;

// Letters that stand for other keys, as in vi and less.
Kind MeaningOf(const Key& key) {
  if (key.kind != Kind::kCharacter) return key.kind;
  switch (key.character) {
    case 'h':
      return Kind::kLeft;
    case 'j':
      return Kind::kDown;
    case 'k':
      return Kind::kUp;
    case 'l':
      return Kind::kRight;
    case 'g':
      return Kind::kHome;
    case 'G':
      return Kind::kEnd;
    case 'b':
      return Kind::kPageUp;
    case ' ':
      return Kind::kPageDown;
    default:
      return Kind::kOther;
  }
}

void ShowJob(TopState& state) {
  if (ChosenJob(state) == nullptr) return;
  state.place = Place::kJob;
  state.cell = 0;
  state.pane_top = 0;
  state.of_round_before = false;
}

void ShowPane(TopState& state, Pane pane) {
  state.pane = pane;
  state.pane_top = 0;
  state.of_round_before = false;
  // Closed and opened it begins with the last lines.
  state.log_top.reset();
}

Pane NextPane(Pane pane) {
  switch (pane) {
    case Pane::kRounds:
      return Pane::kNodes;
    case Pane::kNodes:
      return Pane::kSteps;
    case Pane::kSteps:
      return Pane::kOutput;
    case Pane::kOutput:
      break;
  }
  return Pane::kRounds;
}

// Whether the key was one for what a rank prints.
bool PressForOutput(TopState& state, const Key& key) {
  const bool is_shown = state.pane == Pane::kOutput;
  if (key == Key{Kind::kCharacter, 'o'}) {
    ShowPane(state, is_shown ? Pane::kRounds : Pane::kOutput);
    return true;
  }
  if (!is_shown) return false;
  if (key == Key{Kind::kCharacter, 'p'}) {
    state.of_round_before = !state.of_round_before;
    return true;
  }
  if (key != Key{Kind::kCharacter, 'f'}) return false;
  state.log_top.reset();
  return true;
}

// As above.
bool ScrollOutput(TopState& state, Kind key, const ScreenSize& room) {
  const int page = key == Kind::kPageUp ? -room.rows : key == Kind::kPageDown ? room.rows : 0;
  if (state.pane != Pane::kOutput || page == 0) return false;
  if (state.log) state.log_top = Scrolled(*state.log, state.log_top, room, page);
  return true;
}

void PressInJobs(TopState& state, Kind key, const ScreenSize& size) {
  if (key == Kind::kEnter || key == Kind::kRight) return ShowJob(state);
  const std::vector<const JobSnapshot*> jobs = JobsOf(state);
  if (jobs.empty()) return;
  int at = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i]->run_id == state.run_id) at = static_cast<int>(i);
  }
  const int last = static_cast<int>(jobs.size()) - 1;
  const int page = JobRows(size);
  const int to = key == Kind::kUp         ? at - 1
                 : key == Kind::kDown     ? at + 1
                 : key == Kind::kPageUp   ? at - page
                 : key == Kind::kPageDown ? at + page
                 : key == Kind::kHome     ? 0
                 : key == Kind::kEnd      ? last
                                          : at;
  state.run_id = jobs[static_cast<std::size_t>(std::clamp(to, 0, last))]->run_id;
}

// To another rank. False: that is not what the key does.
bool Choose(TopState& state, Kind key, const JobPage& page) {
  const int last = std::max(static_cast<int>(page.grid.cells.size()) - 1, 0);
  switch (key) {
    case Kind::kUp:
      state.cell = NeighbourOf(page.grid, page.cell, -1, 0);
      return true;
    case Kind::kDown:
      state.cell = NeighbourOf(page.grid, page.cell, 1, 0);
      return true;
    case Kind::kLeft:
      state.cell = NeighbourOf(page.grid, page.cell, 0, -1);
      return true;
    case Kind::kRight:
      state.cell = NeighbourOf(page.grid, page.cell, 0, 1);
      return true;
    case Kind::kHome:
      state.cell = 0;
      return true;
    case Kind::kEnd:
      state.cell = last;
      return true;
    default:
      return false;
  }
}

void PressInJob(TopState& state, Kind key, const JobPage& page) {
  if (Choose(state, key, page)) return;
  switch (key) {
    case Kind::kTab:
      ShowPane(state, NextPane(state.pane));
      break;
    case Kind::kPageUp:
      state.pane_top = std::max(page.pane_top - page.pane_rows, 0);
      break;
    case Kind::kPageDown:
      // No further than the last page.
      state.pane_top =
          std::min(page.pane_top + page.pane_rows,
                   std::max(static_cast<int>(page.pane.size()) - 1 - page.pane_rows, 0));
      break;
    case Kind::kEnter:
      if (!page.grid.cells.empty()) state.place = Place::kRank;
      break;
    case Kind::kEscape:
      state.place = Place::kJobs;
      state.watched.clear();
      break;
    default:
      break;
  }
}

// Where the user is.
void PressSomewhere(TopState& state, const Key& key, const ScreenSize& size) {
  const Kind meaning = MeaningOf(key);
  if (state.place == Place::kJobs) {
    PressInJobs(state, meaning, size);
    return;
  }
  const JobSnapshot* const job = ChosenJob(state);
  if (job == nullptr) {
    if (meaning == Kind::kEscape) {
      state.place = Place::kJobs;
      state.watched.clear();
    }
    return;
  }
  if (PressForOutput(state, key)) return;
  const JobPage page = LayOut(state, *job, size);
  if (ScrollOutput(state, meaning, OutputRoom(state, page, size))) return;
  if (state.place == Place::kJob) {
    PressInJob(state, meaning, page);
  } else if (!Choose(state, meaning, page) && meaning == Kind::kEscape) {
    state.place = Place::kJob;
  }
}

}  // namespace

bool PressKey(TopState& state, const Key& key, const ScreenSize& size) {
  if (state.helps) {
    state.helps = false;
    return false;
  }
  if (key == Key{Kind::kCharacter, 'q'}) return true;
  if (key == Key{Kind::kCharacter, '?'}) {
    state.helps = true;
    return false;
  }
  PressSomewhere(state, key, size);
  FollowChoice(state);
  return false;
}

}  // namespace muster::launcher
