// The guard beside an agent's workers: the real DeadMansSwitch in a process of its own on the
// simulated host, as worker/tree/orphan_guard.cc has it; and what it says when the agent is dead.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "rendezvous/core/types.h"
#include "test/rendezvous/cluster/mutations.h"
#include "test/rendezvous/cluster/network.h"
#include "test/rendezvous/cluster/worker_processes.h"
#include "test/rendezvous/cluster/world.h"
#include "worker/tree/dead_mans_switch.h"

namespace muster::rendezvous {

// What the guard of a dead agent says to the daemon.
class DeathNotice final : public Network::Client {
 public:
  DeathNotice(World world, int host, SessionToken session);
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

// Nobody stops it but those who kill it. Held by shared_ptr, as it outlives its agent.
class SimGuard : public std::enable_shared_from_this<SimGuard> {
 public:
  // `session` is the agent's, by whose host's clock (`clock_offset`) deadlines are.
  SimGuard(World world, int host, Duration clock_offset, const AgentMutations& mutations,
           std::shared_ptr<WorkerProcesses> processes, SessionToken session);

  // The agent's side.
  void SetDeadline(std::optional<TimePoint> deadline);
  void Watch();
  const std::optional<TimePoint>& deadline() const { return deadline_; }
  bool has_struck() const { return struck_; }
  // Its workers are gone: the guard is killed.
  void Dismiss() { over_ = true; }
  // It has been proven that nobody gives this node's ranks away.
  void ExpectNoStrike() { must_not_strike_ = true; }

  // The agent has died: what it would have ended is the guard's to end, and to tell of.
  void AgentGone();
  void PowerOff() { over_ = true; }
  // It has ended.
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

  worker::DeadMansSwitch switch_;
  std::optional<TimePoint> deadline_;
  std::uint64_t sleep_ = 0;  // which one it is in
  bool look_is_due_ = false;
  bool struck_ = false;
  bool over_ = false;
  bool must_not_strike_ = false;
  std::unique_ptr<DeathNotice> notice_;
};

}  // namespace muster::rendezvous
