// Acts on workers that give no sign of life: the loop code around worker::HangWatch.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/statusor.h"
#include "base/lifetime.h"
#include "launcher/cli/launch_config.h"
#include "worker/flight_report.h"
#include "worker/group/worker_group.h"
#include "worker/hang/activity.h"
#include "worker/hang/beat_socket.h"
#include "worker/hang/evidence.h"
#include "worker/hang/hang_watch.h"

namespace muster::launcher {

// Lives as long as the agent, on its thread: the socket remains while rounds come and go. HangWatch
// is asked who is late only when the next rank may be, never in between.
//
// When a rank is late, evidence is first collected from all ranks that run here. Then one of those
// that fell silent at about the same time is killed, the one that is to blame (activity.h), as the
// others just wait for it; what follows is the same as for any failure. Where it is not known which
// is, one is killed all the same, and the report says so. Where all of them wait for others, the
// rank to blame is likely to be on another node, or to be one that fell silent later: these are
// given some time first.
class HangMonitor {
 public:
  struct Callbacks {
    // A beat of a rank that runs here.
    std::function<void(const worker::Beat&)> on_beat;
    // Its first in this round, which comes before.
    std::function<void(int rank)> on_first_beat;
    // A rank is late: a phrase that follows "rank 3", "gave no sign of life for 60 s".
    std::function<void(int rank, const std::string& what)> on_hang;
    // A rank that was late has given a sign of life since, or has exited.
    std::function<void(int rank)> on_life;
    // A rank is late: in which operations all ranks that run here are, one sentence; empty: it is
    // not known. Asked once before the evidence is collected.
    std::function<std::string()> where_ranks_are;
    // The logs of all ranks that run here.
    std::function<std::vector<worker::RankFlight>()> flights;
    // What was found about a rank.
    std::function<void(const worker::Evidence&)> on_evidence;
    // What else the user should know, one sentence.
    std::function<void(const std::string&)> on_warning;
  };

  // Where the socket is to be.
  struct Place {
    // A directory that this run has just made for its user alone (mode 0700); empty: none.
    std::string own_directory;
    // Without that, or where its path is too long for a socket, the socket gets a fresh directory
    // of its own in here, or in /tmp and its like (FindTempDir) when this path is too long as well.
    // Empty: there is no place for files.
    std::string temp_dir;
  };

  // Makes the socket. Errors name what could not be made. `policy.stack_command` must be a command.
  static absl::StatusOr<std::unique_ptr<HangMonitor>> Open(boost::asio::io_context& io,
                                                           const HangPolicy& policy,
                                                           const Place& place, Callbacks callbacks);
  ~HangMonitor();
  HangMonitor(const HangMonitor&) = delete;
  HangMonitor& operator=(const HangMonitor&) = delete;

  // The value of MUSTER_BEAT_SOCKET.
  const std::string& socket_path() const { return socket_->path(); }

  // Every worker of `group` is running; the group must exist until EndRound. Evidence goes into
  // `directory`; when that is empty, it is only reported. `nodes` take part in the round.
  void BeginRound(worker::WorkerGroup& group, const std::string& directory, int nodes);
  // The workers are about to end: they are no longer watched. Evidence that is being collected is
  // reported as far as it is there; if ranks are silent for about as long as the timeout, as those
  // of another node that ends the round for that, it is collected from all at once, without stacks.
  void EndRound();

  // The workers are stopped with the run, and nobody is judged until they continue; then the time
  // of each begins afresh.
  void Suspend();
  void Resume();

  // Whether ranks that were late still are; calls on_life for those that are not. Nothing else
  // finds that out while all are late and only their output would show it. Costs nothing while none
  // is.
  void LookAgain();

  // In the round that began last.
  bool had_beat(int rank) const { return watch_.had_beat(rank); }
  // This rank was killed for its silence, which began then; nullopt: it was not.
  std::optional<std::chrono::steady_clock::time_point> silent_since(int rank) const {
    return killed_ == rank ? watch_.last_sign(rank) : std::nullopt;
  }
  // This rank was killed for its silence, and the user wants no restart then.
  bool ends_job(int rank) const { return policy_.action == HangAction::kEnd && killed_ == rank; }

 private:
  HangMonitor(boost::asio::io_context& io, const HangPolicy& policy, std::string directory,
              Callbacks callbacks);

  void OnBeat(const worker::Beat& beat);
  void AwaitNext();
  void Look();
  // What has arrived, and what was written, counts before anybody is judged.
  void Update();
  // Those that are late no longer.
  void TellLife();
  void Collect(const std::vector<worker::Silence>& late);
  void ReportEvidenceAtOnce();
  void Forget();
  void OnEvidence(std::vector<worker::Evidence> evidence);
  // Kills the rank that is to blame, once it is known who comes into question.
  void Judge();
  // `silent` are never empty.
  worker::Culprit CulpritAmong(const std::vector<worker::Silence>& silent) const;
  void LetOthersGoFirst();
  // Kills the rank for its silence. `others` fell silent with it.
  void Kill(const worker::Silence& silence, const worker::Culprit& culprit,
            const std::vector<worker::Silence>& suspects);
  // Of a worker that runs; 0: it does not.
  pid_t PidOf(int rank) const;

  boost::asio::io_context& io_;
  const HangPolicy policy_;
  const std::string directory_;  // made for the socket alone; empty: it is in another's
  const Callbacks callbacks_;
  std::unique_ptr<worker::BeatSocket> socket_;

  worker::HangWatch watch_;
  boost::asio::steady_timer timer_;
  bool timer_runs_ = false;
  bool suspended_ = false;
  worker::WorkerGroup* group_ = nullptr;  // between BeginRound and EndRound
  std::string evidence_directory_;
  std::unique_ptr<worker::EvidenceRun> evidence_;
  std::vector<worker::Activity> activities_;  // as the last evidence has them
  std::set<int> late_;     // ranks that were told, and of which no life was told since
  bool to_judge_ = false;  // there is evidence of a hang, and nobody was killed for it yet
  bool has_other_nodes_ = false;
  // Until then other nodes may find the rank that is to blame, or other ranks fall silent.
  std::optional<std::chrono::steady_clock::time_point> others_until_;
  boost::asio::steady_timer others_timer_;
  std::optional<int> killed_;
  const base::Lifetime lifetime_;
};

}  // namespace muster::launcher
