#include "launcher/top/view.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "launcher/commands/job_view.h"
#include "launcher/top/job_page.h"
#include "launcher/top/rank_grid.h"

namespace muster::launcher {
namespace {

using rendezvous::JobSnapshot;
using rendezvous::JobState;
using rendezvous::TimePoint;
using Place = TopState::Place;
using Tone = Style::Tone;

// The title, the headings and the keys.
constexpr int kRowsBesideJobs = 3;

ScreenLine TitleOf(const TopState& state, int columns) {
  if (!state.trouble.empty()) {
    return {{PadTo(absl::StrCat("! ", state.trouble, "; trying again"), columns),
             {.tone = Tone::kBad, .bold = true, .reverse = true}}};
  }
  const std::string left = absl::StrCat("muster top  ", state.endpoint);
  const std::string right = state.is_known ? "live" : "connecting";
  const int room = columns - Columns(right);
  return {{PadTo(left, room) + right, {.reverse = true}}};
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
           "A JOB   arrows, hjkl     choose a rank      Enter     all that is known of it",
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
           "  d  all is done          !  has just failed",
           "  b  behind: its own time of a step is longer than other ranks'",
           "  t  in trouble: stopped, silent, or its output is lost",
           "  R, B, T, S, W, X, D     the same, and it has failed before",
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
        {}, {}, {{state.is_known ? "  no jobs are there; the list fills by itself" : ""}}};
    return screen;
  }
  std::vector<JobSnapshot> copies;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    copies.push_back(*jobs[i]);
    if (jobs[i]->run_id == state.run_id) chosen = i;
  }
  const std::vector<std::string> table = absl::StrSplit(JobTable(copies), '\n', absl::SkipEmpty());
  screen.lines = {{}, {{absl::StrCat("  ", table.front()), {.bold = true}}}};
  const auto rows = static_cast<std::size_t>(JobRows(size));
  const std::size_t first = chosen / rows * rows;
  for (std::size_t i = first; i < std::min(first + rows, copies.size()); ++i) {
    const Tone tone = copies[i].state == JobState::kGathering ? Tone::kBusy
                      : copies[i].state == JobState::kEnded   ? Tone::kFaint
                                                              : Tone::kPlain;
    const std::string text = absl::StrCat(i == chosen ? "> " : "  ", table[i + 1]);
    screen.lines.push_back({{PadTo(text, size.columns), {.tone = tone, .reverse = i == chosen}}});
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
      {PadTo(state.helps ? "any key goes back" : KeysOf(state), size.columns), {.reverse = true}}};
  Fit(screen, size);
  return screen;
}

}  // namespace muster::launcher
