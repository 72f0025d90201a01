// What `muster top` knows of jobs, and what its user has selected.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launcher/top/rank_log.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/core/values/types.h"

namespace muster::launcher {

// A value: events update it (here and in view.h), and the screen is derived from it (view.h).
struct TopState {
  // The rendezvous, for display.
  std::string endpoint;
  // The only watched job; empty: all jobs are watched.
  std::string watched;

  // As the rendezvous reported them at `received`.
  std::vector<rendezvous::JobSnapshot> jobs;
  rendezvous::TimePoint received{};
  // Jobs that ended since the program started, as last seen; the latest last, at most kMostPast.
  static constexpr std::size_t kMostPast = 100;
  std::vector<rendezvous::JobSnapshot> past;
  // The rendezvous has answered.
  bool is_known = false;
  // Why the rendezvous has been unreachable since `lost`; empty: it is reachable.
  std::string trouble;
  rendezvous::TimePoint lost{};

  enum class Place { kJobs, kJob, kRank };
  Place place = Place::kJobs;
  bool helps = false;
  // The selected job's run id, and the index of the selected rank's cell in the grid.
  std::string run_id;
  int cell = 0;
  // The pane below the grid, and how many of its lines are above the first visible one. With
  // kOutput the page of a rank shows its output, too.
  enum class Pane { kRounds, kNodes, kSteps, kOutput };
  Pane pane = Pane::kRounds;
  int pane_top = 0;

  // The selected rank's output while it is visible; nullopt otherwise, or if the rank is unknown.
  // Each reading has a new number.
  std::optional<RankLog> log;
  int readings = 0;
  bool of_round_before = false;
  // The first visible row of it; nullopt: follow the last rows.
  std::optional<LogPlace> log_top;
};

// Starts at the list of all jobs or, with a run id, at that job.
TopState BeginTop(const std::string& endpoint, const std::string& run_id);

void OnJobs(TopState& state, const rendezvous::WatchedJobs& watched, rendezvous::TimePoint now);
// The rendezvous is unreachable, for reason `why`.
void OnOutOfTouch(TopState& state, const std::string& why, rendezvous::TimePoint now);

// Reading number `reading` has new output, has lost its daemon for reason `why`, or is over.
// Ignored for earlier readings.
void OnLog(TopState& state, int reading, const rendezvous::LogPart& part);
void OnLogAway(TopState& state, int reading, const std::string& why);
void OnLogOver(TopState& state, int reading, const absl::Status& status);

// Starts and ends readings to match what is visible and selected; call it after every change to
// that.
void FollowChoice(TopState& state);

// Current jobs, then past ones, the latest first. Valid until the state changes.
std::vector<const rendezvous::JobSnapshot*> JobsOf(const TopState& state);
// The selected job; null if there is none with that name.
const rendezvous::JobSnapshot* ChosenJob(const TopState& state);

// The job with the time added that has passed since it was received.
rendezvous::JobSnapshot AsOf(const TopState& state, const rendezvous::JobSnapshot& job,
                             rendezvous::TimePoint now);

}  // namespace muster::launcher
