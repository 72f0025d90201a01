// One host of agents: its power, its clock, the agent process that is there now, and what those
// before it have left behind.
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

  // A new agent process, as a new node. Not while there is one, or while the power is off.
  void StartAgent();
  void StartAgentAfter(Duration pause);
  // kill -9.
  void KillAgent();
  // The agent ends by itself, or not at all if it is stopped.
  void TerminateAgent();
  void StopAgent(Duration duration);
  void PowerOff();
  void PowerOn();
  // From now on agents that end stay away.
  void StayAway() { stays_away_ = true; }
  // See WorkerProcesses.
  void FinishSoon();
  void ObeySoon();
  // See StoreWaiter.
  void ExpectAnswers() { store_waiter_->ExpectAnswers(); }

  bool powered() const { return powered_; }
  // Null when there is none.
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
  std::vector<Left> left_;  // of agents that were killed
  std::unique_ptr<SimAgent> agent_;
  std::unique_ptr<StoreClient> store_client_;
  std::unique_ptr<StoreWaiter> store_waiter_;
};

}  // namespace muster::rendezvous
