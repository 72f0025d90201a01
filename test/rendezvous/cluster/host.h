// A host of agents: its power, its clock, the current agent process, and what earlier ones left
// behind.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "test/rendezvous/cluster/scenario.h"
#include "test/rendezvous/cluster/sim_agent.h"
#include "test/rendezvous/cluster/store_client.h"
#include "test/rendezvous/cluster/store_waiter.h"

namespace muster::rendezvous {

class Host {
 public:
  Host(World world, const Scenario& scenario, const WorkerHabits& habits,
       const AgentMutations& mutations, int index);

  // Starts a new agent process, which is a new node. There must be none, and the power must be on.
  void StartAgent();
  void StartAgentAfter(Duration pause);
  // kill -9.
  void KillAgent();
  // SIGTERM: the agent ends by itself, but not while it is stopped.
  void TerminateAgent();
  // The node is drained, for some seconds.
  void DrainNode();
  void StopAgent(Duration duration);
  void PowerOff();
  void PowerOn();
  // From now on, no new agent replaces one that ends.
  void StayAway() { stays_away_ = true; }
  // See WorkerProcesses.
  void FinishSoon();
  void ObeySoon();
  // See StoreWaiter.
  void ExpectAnswers() { store_waiter_->ExpectAnswers(); }

  // Null if there is none.
  const SimAgent* agent() const { return agent_.get(); }
  void ContinueAgent();
  int index() const { return index_; }

 private:
  struct Left {
    std::shared_ptr<WorkerProcesses> processes;
    std::shared_ptr<SimGuard> guard;
  };

  void RemoveAgent(bool killed);
  void StartStoreClients();
  template <typename Visit>
  void ForEachRound(Visit visit);

  World world_;
  const Scenario& scenario_;
  const WorkerHabits& habits_;
  const AgentMutations& mutations_;
  const int index_;

  bool powered_ = true;
  bool stays_away_ = false;
  int agents_started_ = 0;
  Duration clock_offset_{};
  std::vector<Left> left_;  // by agents that were killed
  std::unique_ptr<SimAgent> agent_;
  std::unique_ptr<SimStoreClient> store_client_;
  std::unique_ptr<StoreWaiter> store_waiter_;
};

}  // namespace muster::rendezvous
