// What `muster top` knows of jobs, and where its user is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launcher/top/log_pane.h"
#include "launcher/top/rank_log.h"
#include "rendezvous/client/watched_jobs.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/types.h"

namespace muster::launcher {

// A value: what happens changes it (here and in keys.h), and what is on the terminal follows from
// it (view.h).
struct TopState {
  // Of the rendezvous, for people.
  std::string endpoint;
  // The only job that is watched; empty: all are.
  std::string watched;

  // As the rendezvous says, at `received`.
  std::vector<rendezvous::JobSnapshot> jobs;
  rendezvous::TimePoint received{};
  // What has ended since this began, as it was last seen; the latest last, kMostPast at most.
  static constexpr std::size_t kMostPast = 100;
  std::vector<rendezvous::JobSnapshot> past;
  // It has been heard from.
  bool is_known = false;
  // Why it cannot be reached, since `lost`; empty: it can.
  std::string trouble;
  rendezvous::TimePoint lost{};

  enum class Place { kJobs, kJob, kRank };
  Place place = Place::kJobs;
  bool helps = false;
  // The chosen job, by its name, and the chosen one of its ranks, by its place in the grid.
  std::string run_id;
  int cell = 0;
  // What is shown below the grid, and what of it is above the first line. With kOutput it is also
  // what is shown of the chosen rank.
  enum class Pane { kRounds, kNodes, kSteps, kOutput };
  Pane pane = Pane::kRounds;
  int pane_top = 0;

  // What the chosen rank prints, while that is shown; nullopt: it is not, or it is not known which
  // rank that is. Each reading of it has another number.
  std::optional<RankLog> log;
  int readings = 0;
  bool of_round_before = false;
  // Its first row on the screen; nullopt: the last rows are seen, as they come.
  std::optional<LogPlace> log_top;
};

// At the list of all jobs or, with a run id, at that job.
TopState BeginTop(const std::string& endpoint, const std::string& run_id);

void OnJobs(TopState& state, const rendezvous::WatchedJobs& watched, rendezvous::TimePoint now);
// The rendezvous cannot be reached, for the reason given.
void OnOutOfTouch(TopState& state, const std::string& why, rendezvous::TimePoint now);

// What the reading of that number has brought, that it has lost its daemon for the reason given,
// and that it is over. Of former readings: nothing.
void OnLog(TopState& state, int reading, const rendezvous::LogPart& part);
void OnLogAway(TopState& state, int reading, const std::string& why);
void OnLogOver(TopState& state, int reading, const absl::Status& status);

// Begins and ends readings, as what is shown and who is chosen demand it; for whatever changes
// that.
void FollowChoice(TopState& state);

// Those that are there, then those that are past, the latest first. Valid until the state changes.
std::vector<const rendezvous::JobSnapshot*> JobsOf(const TopState& state);
// The chosen one; null: there is none of that name.
const rendezvous::JobSnapshot* ChosenJob(const TopState& state);

// A job as it is now, with the time that has passed since it was received.
rendezvous::JobSnapshot AsOf(const TopState& state, const rendezvous::JobSnapshot& job,
                             rendezvous::TimePoint now);

}  // namespace muster::launcher
