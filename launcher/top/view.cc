#include "launcher/top/view.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "base/text.h"
#include "launcher/top/rank_log.h"
#include "rendezvous/pages/job_view.h"

namespace muster::launcher {
namespace {

using rendezvous::JobSnapshot;
using rendezvous::JobState;
using rendezvous::TimePoint;
using Place = TopState::Place;
using Tone = Style::Tone;

// Title, heading and keys.
constexpr int kRowsBesideJobs = 3;

ScreenLine TitleOf(const TopState& state, int columns) {
  if (!state.trouble.empty()) {
    return {{base::PadTo(absl::StrCat("! ", state.trouble, "; trying again"), columns),
             {.tone = Tone::kBad, .bold = true, .reverse = true}}};
  }
  const std::string left = absl::StrCat("muster top  ", state.endpoint);
  const std::string right = state.is_known ? "live" : "connecting";
  const int room = columns - base::Columns(right);
  return {{base::PadTo(left, room) + right, {.reverse = true}}};
}

std::string KeysOf(const TopState& state) {
  const bool has_output = state.pane == TopState::Pane::kOutput;
  const char* const round = state.of_round_before ? "p this round" : "p round before";
  switch (state.place) {
    case Place::kJobs:
      return "Up/Down choose  Enter show the job  ? help  q quit";
    case Place::kJob:
      if (!has_output) {
        return "Arrows choose  Enter rank  o output  Tab other panes  Esc jobs  ? help  q quit";
      }
      return absl::StrCat("Arrows choose  Enter enlarge  PgUp/PgDn scroll  ", round,
                          "  o close  ? help");
    case Place::kRank:
      if (!has_output) return "Arrows other ranks  o output  Esc back  ? help  q quit";
      return absl::StrCat("Arrows other ranks  PgUp/PgDn scroll  ", round,
                          "  o close  Esc back  ? help");
  }
  return "";
}

Screen DrawHelp() {
  Screen screen;
  for (const char* const line : {
           "",
           "JOBS    Up, Down, k, j   choose a job       Enter, l  show it",
           "A JOB   arrows, hjkl     choose a rank      Enter     all about it",
           "        Tab              other panes        o         output of the rank, or none",
           "        PgUp, PgDn, b, Space  scroll them   Home, End, g, G  first, last rank",
           "        Esc              back",
           "OUTPUT  p                the round before   f         its end, as it comes",
           "        Enter            on all of the screen",
           "ALWAYS  ?                this help          q, Ctrl-C end",
           "",
           "A rank is one character: the state of its node.",
           "  r  running              w  waits for a round, or for a place",
           "  s  starts its workers   x  stops the workers of a round that is over",
           "  d  done                 !  has just failed",
           "  g  straggler: its own time of a step is longer than the median rank's",
           "  t  in trouble: stopped, silent, or its output is lost",
           "  R, G, T, S, W, X, D     the same, and it has failed before",
           "",
           "A round gathers its nodes (-) and then runs (=): what a restart has cost",
           "is the time that the round after it took to gather.",
           "",
           "any key goes back",
       }) {
    screen.lines.push_back({{line}});
  }
  return screen;
}

Screen DrawJobs(const TopState& state, const ScreenSize& size) {
  Screen screen;
  const std::vector<const JobSnapshot*> jobs = JobsOf(state);
  if (jobs.empty()) {
    screen.lines = {
        {}, {}, {{state.is_known ? "  there are no jobs yet; the list updates itself" : ""}}};
    return screen;
  }
  std::vector<JobSnapshot> copies;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    copies.push_back(*jobs[i]);
    if (jobs[i]->run_id == state.run_id) chosen = i;
  }
  const std::vector<std::string> table =
      absl::StrSplit(rendezvous::TableText(rendezvous::JobTable(copies)), '\n', absl::SkipEmpty());
  screen.lines = {{}, {{absl::StrCat("  ", table.front()), {.bold = true}}}};
  const auto rows = static_cast<std::size_t>(JobRows(size));
  const std::size_t first = chosen / rows * rows;
  for (std::size_t i = first; i < std::min(first + rows, copies.size()); ++i) {
    const Tone tone = copies[i].state == JobState::kGathering ? Tone::kBusy
                      : copies[i].state == JobState::kEnded   ? Tone::kFaint
                                                              : Tone::kPlain;
    const std::string text = absl::StrCat(i == chosen ? "> " : "  ", table[i + 1]);
    screen.lines.push_back(
        {{base::PadTo(text, size.columns), {.tone = tone, .reverse = i == chosen}}});
  }
  screen.cursor = {.row = 2 + static_cast<int>(chosen - first), .column = 0};
  return screen;
}

Screen DrawPlace(const TopState& state, const ScreenSize& size, TimePoint now) {
  if (state.helps) return DrawHelp();
  if (state.place == Place::kJobs) return DrawJobs(state, size);
  const JobSnapshot* const chosen = ChosenJob(state);
  if (chosen == nullptr) {
    return {.lines = {{},
                      {},
                      {{state.is_known ? absl::StrCat("  there is no job '", state.run_id, "'")
                                       : std::string()}}}};
  }
  const JobSnapshot job = AsOf(state, *chosen, now);
  return state.place == Place::kJob ? DrawJob(state, job, size) : DrawRank(state, job, size);
}

}  // namespace

int JobRows(const ScreenSize& size) {
  return std::max(size.rows - kRowsBesideJobs, 1);
}

Screen DrawTop(const TopState& state, const ScreenSize& size, TimePoint now) {
  Screen screen;
  if (size.columns < kSmallest.columns || size.rows < kSmallest.rows) {
    screen.lines = {{{absl::StrCat("too small: ", kSmallest.columns, " x ", kSmallest.rows)}}};
    screen.lines.resize(static_cast<std::size_t>(std::max(size.rows, 0)));
    Fit(screen, size);
    return screen;
  }
  screen = DrawPlace(state, size, now);
  screen.lines.resize(static_cast<std::size_t>(size.rows));
  screen.lines.front() = TitleOf(state, size.columns);
  screen.lines.back() = {
      {base::PadTo(state.helps ? "any key goes back" : KeysOf(state), size.columns),
       {.reverse = true}}};
  Fit(screen, size);
  return screen;
}

namespace {

using Kind = Key::Kind;
using Pane = TopState::Pane;

// Letters with the meaning of other keys, as in vi and less.
Kind MeaningOf(const Key& key) {
  if (key.kind != Kind::kCharacter) return key.kind;
  constexpr std::pair<char, Kind> kLetters[] = {
      {'h', Kind::kLeft}, {'j', Kind::kDown}, {'k', Kind::kUp},     {'l', Kind::kRight},
      {'g', Kind::kHome}, {'G', Kind::kEnd},  {'b', Kind::kPageUp}, {' ', Kind::kPageDown}};
  for (const auto& [letter, meaning] : kLetters) {
    if (letter == key.character) return meaning;
  }
  return Kind::kOther;
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
  // When opened again, it follows the last lines.
  state.log_top.reset();
}

Pane NextPane(Pane pane) {
  return pane == Pane::kOutput ? Pane::kRounds : static_cast<Pane>(static_cast<int>(pane) + 1);
}

// Whether the key was one for the output.
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

// Whether the key scrolled the output.
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

// Selects another rank; false if the key does not.
bool Choose(TopState& state, Kind key, const JobPage& page) {
  const int rows = key == Kind::kUp ? -1 : key == Kind::kDown ? 1 : 0;
  const int columns = key == Kind::kLeft ? -1 : key == Kind::kRight ? 1 : 0;
  if (rows != 0 || columns != 0) {
    state.cell = NeighbourOf(page.grid, page.cell, rows, columns);
    return true;
  }
  if (key != Kind::kHome && key != Kind::kEnd) return false;
  const int last = std::max(static_cast<int>(page.grid.cells.size()) - 1, 0);
  state.cell = key == Kind::kHome ? 0 : last;
  return true;
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
      // Stops at the last page.
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

// Dispatches by the visible page.
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
