// One node's worker processes in one round, and the processes they have started. They run as long
// as their host has power, whatever happens to their agent.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/core/values/types.h"
#include "test/rendezvous/cluster/world.h"
#include "worker/exit_status.h"

namespace muster::rendezvous {

// How workers behave in the whole cluster. May change while they run.
struct WorkerHabits {
  int failures_per_1000_minutes = 0;  // of one node's workers
  int ignores_term_per_100 = 0;
  int ends_slowly_per_100 = 0;  // obey SIGTERM, but later than most timeouts
  int leaves_child_per_100 = 0;
  Duration work{};      // until all have exited with 0
  bool finish = false;  // workers that start now exit with 0 soon
  bool never_fail = false;
  bool obey = false;  // every process that is asked to end does so soon
};

// Reports to Events what happens to a process, at the true time. Held by shared_ptr; tasks waiting
// in the scheduler hold it weakly.
class WorkerProcesses : public std::enable_shared_from_this<WorkerProcesses> {
 public:
  struct Events {
    // Worker number `worker` has ended.
    std::function<void(std::size_t worker, const worker::ExitStatus&)> on_exit;
    std::function<void()> on_orphan_ended;
  };

  // `workers`: how many will be started.
  WorkerProcesses(World world, std::string node, Assignment assignment, const WorkerHabits& habits,
                  int workers);

  // With empty events, nothing is reported any more.
  void SetEvents(Events events) { events_ = std::move(events); }

  // Starts the next worker.
  void StartOne();
  // Sends every process a signal that asks it to end, or SIGKILL.
  void Ask();
  void Kill();
  // Their agent is dead: the kernel kills the workers, but not the processes they started.
  void ParentDied();
  void PowerOff();
  // The workers finish the rest of their work soon; those that were asked to end do so soon.
  void FinishSoon();
  void ObeySoon();

  // Whether any process is left, even if it has been killed.
  bool any() const { return left_ > 0; }
  // Whether any process still runs code of its own.
  bool alive() const { return running_ > 0; }
  bool has_ended(std::size_t worker) const { return processes_[by_worker_[worker]].gone; }
  // Whether any process does not ignore the signal that asks it to end.
  bool any_answers() const;
  const Assignment& assignment() const { return assignment_; }
  const std::string& node() const { return node_; }

 private:
  struct Member {
    int worker = -1;  // -1: started by a worker, in its own session
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
  // The process stops running, and is gone after `lingers`.
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
  const TimePoint finishes_;  // when all of them finish, approximately
  Events events_;
  std::vector<Member> processes_;
  std::vector<std::size_t> by_worker_;
  int running_ = 0;
  int left_ = 0;
  int succeeded_ = 0;
};

}  // namespace muster::rendezvous
