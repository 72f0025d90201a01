// The workers of one node in one round, and the guard that ends them when their agent cannot: what
// worker/ is on a real host. They outlive their agent, but not by much.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "rendezvous/core/types.h"
#include "test/rendezvous/cluster/mutations.h"
#include "test/rendezvous/cluster/network.h"
#include "test/rendezvous/cluster/process.h"
#include "test/rendezvous/cluster/world.h"

namespace muster::rendezvous {

// How workers behave, for all of a cluster; may change while they run.
struct WorkerHabits {
  int failures_per_1000_minutes = 0;  // of one node's workers
  int ignores_term_per_100 = 0;
  Duration work{};      // until all have exited with 0
  bool finish = false;  // those that start exit with 0 soon
  bool never_fail = false;
};

class FakeWorkers : public std::enable_shared_from_this<FakeWorkers> {
 public:
  // Each runs in the agent's process, or never if that is dead.
  struct Events {
    std::function<void()> on_started;
    std::function<void(const WorkerFailure&)> on_first_failure;
    // The guard kills them; on_gone follows.
    std::function<void()> on_lost_touch;
    std::function<void(bool succeeded)> on_gone;
  };

  FakeWorkers(World world, std::string node, Assignment assignment, const WorkerHabits& habits,
              std::weak_ptr<Process> agent, Events events);

  // The first of them runs from now on.
  void Start();
  // The stop ladder: a signal, and SIGKILL after the grace time.
  void Stop();
  void Kill() { DieWithin(std::chrono::milliseconds(5)); }
  // The guard does it.
  void LoseTouch();
  // The agent is dead: the kernel and the guard end them, which then calls `when_gone`.
  void AgentDied(std::function<void()> when_gone);
  void DieWithin(Duration longest);
  void Die(bool succeeded);
  // All of a sudden they do what is left of their work.
  void FinishSoon();

  bool alive() const { return alive_; }
  const Assignment& assignment() const { return assignment_; }

 private:
  // Runs `task` after `delay` if they are still alive.
  void After(Duration delay, std::function<void()> task);
  void ToAgent(std::function<void()> task);
  void Fail();

  World world_;
  const std::string node_;
  const Assignment assignment_;
  const WorkerHabits& habits_;
  const std::weak_ptr<Process> agent_;
  const Events events_;

  bool alive_ = false;
  bool stopping_ = false;
  bool dying_ = false;
  std::function<void()> when_gone_;
};

// What the guard of a dead agent says to the daemon.
class DeathNotice final : public Network::Client {
 public:
  DeathNotice(World world, int host, SessionToken session);
  ~DeathNotice() override;

 private:
  void OnConnected(ConnectionId connection) override;
  void OnRefused(ConnectionId) override { connection_ = 0; }
  void OnMessage(ConnectionId, Downward) override {}
  void OnClosed(ConnectionId) override { connection_ = 0; }

  World world_;
  const SessionToken session_;
  ConnectionId connection_ = 0;
};

// worker/orphan_guard.h: kills when the time comes that it was told last, whatever the agent does;
// and when the agent has died, of which it tells the daemon.
class FakeGuard {
 public:
  FakeGuard(World world, int host, const AgentMutations& mutations)
      : world_(world), host_(host), mutations_(mutations) {}

  // `session`: the agent's.
  void Watch(const std::shared_ptr<FakeWorkers>& workers, SessionToken session);
  void AgentDied();
  // Nothing is left of it.
  void PowerOff() { notice_.reset(); }
  // In true time.
  void SetDeadline(std::optional<TimePoint> deadline);

 private:
  void Schedule();
  void Look();

  void Tell();

  World world_;
  const int host_;
  const AgentMutations& mutations_;
  std::weak_ptr<FakeWorkers> workers_;
  SessionToken session_;
  std::unique_ptr<DeathNotice> notice_;
  std::optional<TimePoint> deadline_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  bool scheduled_ = false;
};

}  // namespace muster::rendezvous
