// Checks rounds, workers and verdicts. Sees all hosts at the true time.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/types.h"
#include "test/rendezvous/cluster/checks/incidents.h"
#include "test/rendezvous/cluster/checks/violations.h"

namespace muster::rendezvous {

// Is told of everything as it happens. Knows what the core promises, not how it works.
class RoundChecks {
 public:
  RoundChecks(Violations& violations, Incidents& incidents)
      : violations_(violations), incidents_(incidents) {}

  // The daemon forgets its jobs when it dies, so it cannot know the workers of its previous life.
  // kLongLived checks that those end by themselves.
  void DaemonForgets() { durable_ = false; }
  // From now on, nothing may end the current round of this job.
  void ExpectNoNewRound(const std::string& run_id);
  // From now on, any job may get new rounds.
  void ExpectNewRounds() {
    for (auto& [run_id, job] : jobs_) job.stays_as_it_is = false;
  }

  // `node` acts on an Assignment. The first one of a round defines the round.
  void OnAssignment(const std::string& node, const Assignment& assignment);
  // The node's workers run from OnWorkersAlive() to OnWorkersDead().
  void OnWorkersAlive(const std::string& node, const Assignment& assignment);
  void OnWorkersDead(const std::string& node, const Assignment& assignment, TimePoint now);
  // The daemon has heard from the node, whose lease now ends at `lease_ends` (true time).
  void OnHeard(const std::string& node, TimePoint lease_ends) { leases_[node] = lease_ends; }
  // The node has proof that its place will never be given away.
  void OnPlaceKept(const std::string& node) { leases_[node] = TimePoint::max(); }
  // A worker failed and its agent will report it; or all of the node's workers exited with 0.
  void OnFailure(const std::string& run_id, RoundId round, int rank, const std::string& host);
  void OnSuccess(const std::string& run_id, RoundId round, int group_rank);
  void OnVerdict(const std::string& run_id, Incarnation incarnation, const Verdict& verdict,
                 int max_restarts);
  // The daemon considers this life of the job ended, whether or not any agent was told.
  void OnForgotten(const std::string& run_id, Incarnation incarnation) {
    jobs_[run_id].forgotten.insert(incarnation);
  }
  // Whether this life of the job may have ended.
  bool MayHaveEnded(const std::string& run_id, Incarnation incarnation) {
    const JobTruth& job = jobs_[run_id];
    return !durable_ || job.verdicts.contains(incarnation) || job.forgotten.contains(incarnation) ||
           job.newest.incarnation != incarnation;
  }

  // The number of nodes whose workers are running now.
  std::size_t running_nodes() const { return running_; }

 private:
  struct RoundTruth {
    Assignment first;                                // the first Assignment of the round
    std::map<int, std::string> nodes;                // by group rank
    std::map<int, std::pair<int, int>> ranks;        // base rank: group rank, to check their order
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
  std::size_t running_ = 0;
  std::map<std::string, TimePoint> leases_;  // by node
  std::map<std::string, JobTruth> jobs_;
};

}  // namespace muster::rendezvous
