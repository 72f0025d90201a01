// Whether rounds, workers and verdicts are as they must be. It sees all hosts at the true time.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "rendezvous/core/directive.h"
#include "rendezvous/core/types.h"
#include "test/rendezvous/cluster/checks/incidents.h"
#include "test/rendezvous/cluster/checks/violations.h"

namespace muster::rendezvous {

// Told of everything when it happens. Knows nothing of how the core works, only what it promises.
class RoundChecks {
 public:
  RoundChecks(Violations& violations, Incidents& incidents)
      : violations_(violations), incidents_(incidents) {}

  // A daemon that forgets its jobs when it dies cannot know of the workers of its last life; that
  // those end by themselves is kLongLived's.
  void DaemonForgets() { durable_ = false; }
  // From now on nothing happens that may end the round of this job.
  void ExpectNoNewRound(const std::string& run_id);
  // Anything may happen to all of them.
  void ExpectNewRounds() {
    for (auto& [run_id, job] : jobs_) job.stays_as_it_is = false;
  }

  // `node` acts upon it; the first time tells what the round is.
  void OnAssignment(const std::string& node, const Assignment& assignment);
  // Workers of the node run from here to there.
  void OnWorkersAlive(const std::string& node, const Assignment& assignment);
  void OnWorkersDead(const std::string& node, const Assignment& assignment, TimePoint now);
  // The daemon has heard the node, and counts its lease until then (true time).
  void OnHeard(const std::string& node, TimePoint lease_ends) { leases_[node] = lease_ends; }
  // It was proven to the node that nobody will ever give its place away.
  void OnPlaceKept(const std::string& node) { leases_[node] = TimePoint::max(); }
  // A worker failed, and its agent will say so; or the node's workers have all exited with 0.
  void OnFailure(const std::string& run_id, RoundId round, int rank, const std::string& host);
  void OnSuccess(const std::string& run_id, RoundId round, int group_rank);
  void OnVerdict(const std::string& run_id, Incarnation incarnation, const Verdict& verdict,
                 int max_restarts);
  // The daemon holds that this life of the job has ended, whether or not anybody was there to hear.
  void OnForgotten(const std::string& run_id, Incarnation incarnation) {
    jobs_[run_id].forgotten.insert(incarnation);
  }
  // Nobody can hold that this life of the job goes on.
  bool MayHaveEnded(const std::string& run_id, Incarnation incarnation) {
    const JobTruth& job = jobs_[run_id];
    return !durable_ || job.verdicts.contains(incarnation) || job.forgotten.contains(incarnation) ||
           job.newest.incarnation != incarnation;
  }
  void OnOperatorClosed() { closed_ = true; }

  // Jobs' workers that run now.
  std::size_t running_nodes() const { return running_; }

 private:
  struct RoundTruth {
    Assignment first;                                // as it was first told to anyone
    std::map<int, std::string> nodes;                // by group rank
    std::map<int, std::pair<int, int>> ranks;        // base rank: group rank, to see that they grow
    std::set<std::pair<int, std::string>> failures;  // rank and host
    std::set<int> succeeded;                         // group ranks
  };
  struct JobTruth {
    RoundId newest;
    std::map<RoundNumber, RoundTruth> rounds;  // of the newest incarnation
    std::map<Incarnation, Verdict> verdicts;
    std::set<Incarnation> forgotten;
    std::multiset<std::pair<Incarnation, RoundNumber>> alive;
    bool stays_as_it_is = false;
  };

  void OnNewRound(JobTruth& job, const Assignment& assignment);
  void Fail(Check check, const Assignment& assignment, const std::string& what);

  Violations& violations_;
  Incidents& incidents_;
  bool durable_ = true;
  bool closed_ = false;
  std::size_t running_ = 0;
  std::map<std::string, TimePoint> leases_;  // by node
  std::map<std::string, JobTruth> jobs_;
};

}  // namespace muster::rendezvous
