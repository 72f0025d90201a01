// The guard of an agent's workers: the real DeadMansSwitch in its own process on the simulated
// host, as in worker/tree/orphan_guard.cc, and the message it sends when the agent is dead.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "rendezvous/core/values/types.h"
#include "test/rendezvous/cluster/mutations.h"
#include "test/rendezvous/cluster/network.h"
#include "test/rendezvous/cluster/worker_processes.h"
#include "test/rendezvous/cluster/world.h"
#include "worker/tree/orphan_guard.h"

namespace muster::rendezvous {

// The message of a dead agent's guard to the daemon.
class DeathNotice final : public Network::Client {
 public:
  DeathNotice(World world, int host, int place, SessionToken session);
  ~DeathNotice() override;

  bool over() const { return connection_ == 0; }

 private:
  void OnConnected(ConnectionId connection) override;
  void OnRefused(ConnectionId) override { connection_ = 0; }
  void OnMessage(ConnectionId, Downward) override {}
  void OnClosed(ConnectionId) override { connection_ = 0; }

  World world_;
  const SessionToken session_;
  ConnectionId connection_ = 0;
};

// Runs until it ends or is killed; it is never stopped. Held by shared_ptr, because it outlives its
// agent.
class SimGuard : public std::enable_shared_from_this<SimGuard> {
 public:
  // `session` is the agent's, and `place` where its daemon is at first. Deadlines are in the time
  // of its host's clock (`clock_offset`).
  SimGuard(World world, int host, int place, Duration clock_offset, const AgentMutations& mutations,
           std::shared_ptr<WorkerProcesses> processes, SessionToken session);

  // Called by the agent.
  void SetDeadline(std::optional<TimePoint> deadline);
  void Watch();
  // The daemon is elsewhere now.
  void MoveDeathNotice(int place);
  const std::optional<TimePoint>& deadline() const { return deadline_; }
  bool has_struck() const { return struck_; }
  // The workers are gone: the guard is killed.
  void Dismiss() { over_ = true; }
  // There is proof that this node's ranks will not be given away.
  void ExpectNoStrike() { must_not_strike_ = true; }

  // The agent has died: the guard now has to end its workers and report its death.
  void AgentGone();
  void PowerOff() { over_ = true; }
  // Whether the guard has ended.
  bool over() const { return over_ || (notice_ != nullptr && notice_->over()); }

 private:
  TimePoint Now() const { return world_.scheduler.now() + clock_offset_; }
  void Look();
  void Run(worker::DeadMansSwitch::Event event);
  void Strike();
  void StandIn();
  void TellWhenAllAreGone(TimePoint until);
  void Tell();

  World world_;
  const int host_;
  const Duration clock_offset_;
  const AgentMutations& mutations_;
  const std::shared_ptr<WorkerProcesses> processes_;
  const SessionToken session_;

  int place_;
  bool has_moved_ = false;
  worker::DeadMansSwitch switch_;
  std::optional<TimePoint> deadline_;
  std::uint64_t sleep_ = 0;  // the number of the current sleep
  bool look_is_due_ = false;
  bool struck_ = false;
  bool over_ = false;
  bool must_not_strike_ = false;
  std::unique_ptr<DeathNotice> notice_;
};

}  // namespace muster::rendezvous
