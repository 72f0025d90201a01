// What is shown of a job, and in which words: the same for `muster status`, `muster top`, the page
// and metrics. Values alone; who shows them adds neither columns nor rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "rendezvous/core/values/snapshot.h"

namespace muster::rendezvous {

// A text, in which there may be a time that goes on while one looks at it.
struct Cell {
  Cell() = default;
  Cell(std::string text) : before(std::move(text)) {}  // NOLINT: any text is a cell
  Cell(const char* text) : before(text) {}             // NOLINT
  Cell(std::string before, Duration time, std::string after = "")
      : before(std::move(before)), time(time), after(std::move(after)) {}

  std::string before;
  // For how long it has been so, or how long ago it was.
  std::optional<Duration> time;
  std::string after;
};
// As of now: "48 % slower, most in data, for 7 s".
std::string CellText(const Cell& cell);

struct Row {
  std::vector<Cell> cells;
  // To be looked at first.
  bool stands_out = false;
};

struct Table {
  std::vector<const char*> columns;
  std::vector<Row> rows{};
  // So many more rows there are.
  std::size_t left_out = 0;
};
// Of lines, each with its end: the columns, the rows, and what is left out. "" without rows.
std::string TableText(const Table& table);

// JOB  STATE  ROUND  NODES  RANKS  RESTARTS  MESSAGE
// NODES and RANKS are those of the round; MESSAGE says whom the job waits for and why, or how and
// when it ended.
Table JobTable(const std::vector<JobSnapshot>& jobs);

// HOST  NODE  RANKS  STATE  SINCE  HEARD  ADDRESS  DEVICES  PLACE
// Spares last. NODE is the node's rank, SINCE when its state began, HEARD since when nothing was
// heard from its agent, and PLACE says why it has that rank.
Table NodeTable(const JobSnapshot& job);

// ROUND  BEGAN  GATHERED  RAN  NODES  RANKS  OVER
// The job's last rounds, this one last. BEGAN is how long ago it opened, OVER why it ended.
Table RoundTable(const JobSnapshot& job);

// How many ranks, or alerts, are shown where not all are: as many as fit on a screen.
inline constexpr std::size_t kMostShown = 64;
inline constexpr std::size_t kAllShown = SIZE_MAX;

// RANK  HOST, and what a rank tells of its steps.
// Those that tell, as ChooseRanks chooses them; stragglers stand out.
Table RankTable(const JobSnapshot& job, std::size_t most = kMostShown);

// What a rank tells of its steps, what matters most first:
inline constexpr const char* kStepColumns[] = {"STEP",      "LOSS", "STRAGGLER", "STEP TIME",
                                               "SAMPLES/S", "BEAT", "PHASES"};
std::vector<Cell> StepCells(const RankSnapshot& rank);

// RANK  HOST  SINCE  TROUBLE
Table RankAlertTable(const JobSnapshot& job);

// How the job ended, "failed" or "timed out"; of one that has not, the name of its state.
const char* StateWord(const JobSnapshot& job);
const char* Word(VerdictKind outcome);

// What is known of the job as a whole, by name; what is not known is left out.
std::vector<std::pair<const char*, Cell>> FactsOf(const JobSnapshot& job);

// All of that as the page is given it (rendezvous/pages/page/page.js):
//   {"state": "running", "facts": [["NODES", CELL]...], "alerts": TABLE, "ranks": TABLE,
//    "rounds": TABLE}
// A TABLE is {"columns": [...], "rows": [{"cells": [CELL...], "stands_out": bool}...], "more": 0},
// and a CELL a text, or [before, seconds, after].
base::Json ViewJson(const JobSnapshot& job);

// The rules behind it, for who shows figures.

struct ShownRank {
  const JobSnapshot& job;
  const NodeSnapshot& node;
  const RankSnapshot& rank;
};
struct ShownRanks {
  std::vector<ShownRank> first;
  std::vector<ShownRank> more_stragglers;
  std::size_t left_out = 0;
};
// Of the ranks that tell of their steps the first `most`, over all jobs in order, and of the others
// as many stragglers. `jobs` must outlive the result.
ShownRanks ChooseRanks(std::span<const JobSnapshot> jobs, std::size_t most);

// What the ranks have in common that tell of their steps; nullopt: none tells that.
struct JobSteps {
  std::optional<std::int64_t> step;          // of the rank that is furthest behind
  std::optional<double> loss;                // of the first that tells one
  std::optional<double> samples_per_second;  // of all together
  std::optional<int> stragglers;
};
JobSteps StepsOf(const JobSnapshot& job);

// The first rank of each node's workers. They follow from those of the nodes before it, so behind
// one that has left already they are not known.
std::vector<std::optional<int>> FirstRanks(const JobSnapshot& job);

// The share of the job's age in which it was productive (JobSnapshot::productive), from 0 to 1; of
// one that has only begun, 0.
double Goodput(const JobSnapshot& job);

// The ranks of the current round.
int CountRanks(const JobSnapshot& job);

// A job as JSON: for `muster status --json` and for the daemon's HTTP.

// The job, its rounds and its nodes, as docs/observing.md says. A missing rank is null; times are
// seconds. Bytes that are not UTF-8 become U+FFFD when it is printed.
base::Json ToJson(const JobSnapshot& job);

// All of them, as an array.
base::Json ToJson(const std::vector<JobSnapshot>& jobs);

}  // namespace muster::rendezvous
