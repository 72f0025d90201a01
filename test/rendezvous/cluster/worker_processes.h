// The processes of one node's workers in one round, and what those have started: they run as long
// as their host has power, whatever becomes of their agent.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/core/types.h"
#include "test/rendezvous/cluster/world.h"
#include "worker/exit_status.h"

namespace muster::rendezvous {

// How workers behave, for all of a cluster; may change while they run.
struct WorkerHabits {
  int failures_per_1000_minutes = 0;  // of one node's workers
  int ignores_term_per_100 = 0;
  int ends_slowly_per_100 = 0;  // answers SIGTERM, but later than most time-outs
  int leaves_child_per_100 = 0;
  Duration work{};      // until all have exited with 0
  bool finish = false;  // those that start exit with 0 soon
  bool never_fail = false;
  bool obey = false;  // whoever is asked to end does so soon
};

// What happens to a process is told to Events at the true time. Held by shared_ptr: what waits in
// the scheduler holds it weakly.
class WorkerProcesses : public std::enable_shared_from_this<WorkerProcesses> {
 public:
  struct Events {
    // A worker, by its number, has ended.
    std::function<void(std::size_t worker, const worker::ExitStatus&)> on_exit;
    std::function<void()> on_orphan_ended;
  };

  // `workers`: how many are going to be started.
  WorkerProcesses(World world, std::string node, Assignment assignment, const WorkerHabits& habits,
                  int workers);

  // Nobody is told any more when there are no events.
  void SetEvents(Events events) { events_ = std::move(events); }

  // The next worker runs from now on.
  void StartOne();
  // To every process there is: one that asks it to end, or SIGKILL.
  void Ask();
  void Kill();
  // Their agent is dead: the kernel kills the workers, and not what they have started.
  void ParentDied();
  void PowerOff();
  // All of a sudden they do what is left of their work; and who was asked to end does so.
  void FinishSoon();
  void ObeySoon();

  // Some of them is there, though it may have been killed.
  bool any() const { return left_ > 0; }
  // Some of them runs code of its own.
  bool alive() const { return running_ > 0; }
  bool has_ended(std::size_t worker) const { return processes_[by_worker_[worker]].gone; }
  // Some of them does not ignore the signal that asks it to end.
  bool any_answers() const;
  const Assignment& assignment() const { return assignment_; }
  const std::string& node() const { return node_; }

 private:
  struct Member {
    int worker = -1;  // -1: started by a worker, and in a session of its own
    bool runs = true;
    bool gone = false;
    bool killed = false;
    bool asked = false;
    bool ignores = false;
    Duration answers_after{};
  };

  std::size_t Add(int worker);
  void AskOne(std::size_t index);
  void KillOne(std::size_t index);
  void EndSoon(std::size_t index, Duration longest);
  // Runs no code any more, and is gone after `lingers`.
  void End(std::size_t index, worker::ExitStatus status, Duration lingers);
  void TellEnd(std::size_t index, const worker::ExitStatus& status);
  void PlanWork(std::size_t index);
  void Fail(std::size_t index);
  void Succeed(std::size_t index);
  void After(Duration delay, std::function<void()> task);

  World world_;
  const std::string node_;
  const Assignment assignment_;
  const WorkerHabits& habits_;
  const int workers_;
  const TimePoint finishes_;  // all of them, or nearly then
  Events events_;
  std::vector<Member> processes_;
  std::vector<std::size_t> by_worker_;
  int running_ = 0;
  int left_ = 0;
  int succeeded_ = 0;
};

}  // namespace muster::rendezvous
