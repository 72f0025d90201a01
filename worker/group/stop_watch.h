// Notices when a worker is stopped, by `kill -STOP` or a scheduler that suspends jobs, and when it
// continues.
#pragma once

#include <sys/types.h>

#include <functional>
#include <set>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "base/lifetime.h"

namespace muster::worker {

// Nothing polls: the kernel tells a parent by SIGCHLD. So it only hears of children of this
// program, the workers themselves and not what they have started. A debugger that holds a worker
// does not count as a stop, as the kernel tells the tracer, not the parent. It never waits for a
// child's end.
//
// Lives on the loop's thread.
class StopWatch {
 public:
  // `on_stopped` and `on_continued` are called from the loop; a process that was stopped and
  // continued before we looked is not reported. They may destroy the watch.
  struct Callbacks {
    std::function<void(pid_t pid, int signal)> on_stopped;
    std::function<void(pid_t pid)> on_continued;
  };

  // To be created after a WorkerTree: the tree asks the kernel not to report children that are
  // merely stopped, and this reverses that.
  StopWatch(boost::asio::io_context& io, Callbacks callbacks);
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

  // `child` must not have been waited for.
  void Add(pid_t child) { watched_.insert(child); }
  // Before, or just after, its end has been waited for: the number may come to mean another
  // process.
  void Remove(pid_t child);

  // The children that are stopped now.
  const std::set<pid_t>& stopped() const { return stopped_; }

 private:
  void AwaitNews();
  // False when the watch is gone.
  bool Look(pid_t child);

  const Callbacks callbacks_;
  std::set<pid_t> watched_;
  std::set<pid_t> stopped_;
  boost::asio::signal_set child_news_;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
