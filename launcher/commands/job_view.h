// The jobs of a rendezvous, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/core/snapshot.h"

namespace muster::launcher {

// A line of headings and one for each job:
//   JOB  STATE  ROUND  NODES  RANKS  RESTARTS  MESSAGE
// NODES and RANKS are those of the round; MESSAGE says whom the job waits for and why, or how and
// when it ended.
std::string JobTable(const std::vector<rendezvous::JobSnapshot>& jobs);

// A line of headings and one for each node of the job, spares last:
//   HOST  NODE  RANKS  STATE  SINCE  HEARD  ADDRESS  DEVICES  PLACE
// NODE is the node's rank, SINCE when its state began, HEARD since when nothing was heard from its
// agent, and PLACE says why it has that rank.
std::string NodeTable(const rendezvous::JobSnapshot& job);

// A line of headings and one for each of the job's last rounds, this one last:
//   ROUND  BEGAN  GATHERED  RAN  NODES  RANKS  OVER
// BEGAN is how long ago it opened, OVER why it ended.
std::string RoundTable(const rendezvous::JobSnapshot& job);

// A line of headings and one for each rank that tells of its steps; empty if none does:
//   RANK  HOST  STEP  BEAT  STEP TIME  LOSS  SAMPLES/S  PHASES  STRAGGLER
// Of many ranks the first and the stragglers, with a last line that says how many more there are.
std::string RankTable(const rendezvous::JobSnapshot& job);

// What a rank has told of its steps, as RankTable shows it; empty: it has not told.
struct RankWords {
  std::string step;
  std::string beat;
  std::string step_time;
  std::string loss;
  std::string samples_per_second;
  std::string phases;
  std::string straggler;
};
RankWords InWords(const rendezvous::RankSnapshot& rank);

// A line of headings and one for each thing that is wrong with a rank; empty if nothing is:
//   RANK  HOST  SINCE  TROUBLE
std::string TroubleTable(const rendezvous::JobSnapshot& job);

// A JSON array with an object for each job. A missing rank is null. Bytes that are not UTF-8 become
// U+FFFD.
std::string JobsJson(const std::vector<rendezvous::JobSnapshot>& jobs);

}  // namespace muster::launcher
