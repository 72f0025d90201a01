// A process that can be stopped and killed, such as the simulated daemon and agents.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "test/rendezvous/simulation/random.h"
#include "test/rendezvous/simulation/scheduler.h"

namespace muster::rendezvous {

// While it is stopped (SIGSTOP, a machine that hangs) nothing in it runs: events from the network
// and from timers wait. When it continues, either kind may run first, because an event loop does
// not guarantee an order. Once it is killed nothing in it ever runs. Held by shared_ptr; tasks
// waiting in the scheduler hold it weakly.
class Process : public std::enable_shared_from_this<Process> {
 public:
  using Task = std::function<void()>;

  Process(Scheduler& scheduler, Random& random) : scheduler_(scheduler), random_(random) {}

  // Runs `task`, caused by the network, the disk or a child.
  template <typename F>
  void Do(F&& task) {
    Run(from_outside_, std::forward<F>(task));
  }
  // Runs `task` after `delay`, as a timer of the process.
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
  // Most tasks run at once. One becomes a Task, which may need an allocation, only if it has to
  // wait.
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
