// Notices that a worker was stopped, by `kill -STOP` or a scheduler that suspends jobs, and that it
// goes on.
#pragma once

#include <sys/types.h>

#include <functional>
#include <set>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "base/lifetime.h"

namespace muster::worker {

// Nothing polls: the kernel tells a parent by SIGCHLD. So only children of this program are heard
// of, the workers themselves and not what they have started; and a debugger that holds a worker is
// no stop, as its tracer and not its parent is told of that. It waits for nobody's end.
//
// Lives on the loop's thread.
class StopWatch {
 public:
  // `on_stopped` and `on_continued` are called from the loop; a process that was stopped and went
  // on again before we looked is not told of. They may destroy the watch.
  struct Callbacks {
    std::function<void(pid_t pid, int signal)> on_stopped;
    std::function<void(pid_t pid)> on_continued;
  };

  // To be made after a WorkerTree: that one asks the kernel to keep quiet about children that are
  // merely stopped, and this one takes it back.
  StopWatch(boost::asio::io_context& io, Callbacks callbacks);
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

  // `child` must not have been waited for.
  void Add(pid_t child) { watched_.insert(child); }
  // Before, or just after, somebody has waited for its end: the number may come to mean another.
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
