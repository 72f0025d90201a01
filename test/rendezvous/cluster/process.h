// A process that can be stopped and killed, as the simulated daemon and the agents are.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "test/rendezvous/cluster/scheduler.h"
#include "test/rendezvous/simulation/random.h"

namespace muster::rendezvous {

// While it is stopped (SIGSTOP, a machine that hangs) nothing of it runs: what comes from the
// network and from timers waits. When it goes on, either kind may come first, as an event loop does
// not say. Once it is killed nothing of it ever runs. Held by shared_ptr: what waits in the
// scheduler holds it weakly.
class Process : public std::enable_shared_from_this<Process> {
 public:
  using Task = std::function<void()>;

  Process(Scheduler& scheduler, Random& random) : scheduler_(scheduler), random_(random) {}

  // Something came from the network, the disk or a child.
  template <typename F>
  void Do(F&& task) {
    Run(from_outside_, std::forward<F>(task));
  }
  // A timer of the process.
  template <typename F>
  void After(Duration delay, F task) {
    scheduler_.After(delay, [weak = weak_from_this(), task = std::move(task)]() mutable {
      if (const auto process = weak.lock()) process->Run(process->from_timers_, std::move(task));
    });
  }

  void Stop() { stopped_ = true; }
  void Continue() {
    if (!stopped_ || killed_) return;
    stopped_ = false;
    if (random_.Chance(1, 2)) std::swap(from_outside_, from_timers_);
    const auto keep = shared_from_this();
    for (std::deque<Task>* tasks : {&from_outside_, &from_timers_}) {
      for (Task& task : std::exchange(*tasks, {})) {
        if (!killed_) task();
      }
    }
  }
  void Kill() {
    killed_ = true;
    from_outside_.clear();
    from_timers_.clear();
  }
  bool stopped() const { return stopped_; }
  bool killed() const { return killed_; }

 private:
  // Most of what happens is done at once: it is made a Task, which may have to be allocated, only
  // if it has to wait.
  template <typename F>
  void Run(std::deque<Task>& waiting, F&& task) {
    if (killed_) return;
    if (stopped_) {
      waiting.push_back(std::forward<F>(task));
    } else {
      task();
    }
  }

  Scheduler& scheduler_;
  Random& random_;
  bool stopped_ = false;
  bool killed_ = false;
  std::deque<Task> from_outside_;
  std::deque<Task> from_timers_;
};

}  // namespace muster::rendezvous
