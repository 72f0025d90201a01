// All processes that the workers of one group have started, directly or indirectly, including those
// that moved to another process group or session, or got another parent when their own exited.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "base/lifetime.h"
#include "worker/process/process_info.h"

namespace muster::worker {

// While this object exists, the program is a child subreaper: a process below it that loses its
// parent becomes the program's child instead of leaving the tree. Such adopted orphans are reaped
// here by pid, so that other parts of the program keep their own children. They are told apart by
// their session: a worker leads its own, and no process can enter ours.
//
// No polling: the last process of the tree to exit is always our child, so SIGCHLD arrives. Lives
// on the loop's thread; one object at a time, while workers run.
class WorkerTree {
 public:
  // The program's existing children are never part of the tree. `on_orphan` is called from the loop
  // after adopted orphans have exited.
  WorkerTree(boost::asio::io_context& io, std::function<void()> on_orphan);
  // The program stops being a subreaper, unless it was one before.
  ~WorkerTree();
  WorkerTree(const WorkerTree&) = delete;
  WorkerTree& operator=(const WorkerTree&) = delete;

  // A worker, from its start until it has been waited for or abandoned. The tree never waits for
  // workers.
  void AddWorker(pid_t worker) { workers_.insert(worker); }
  void RemoveWorker(pid_t worker);
  // Excludes a child that leads a session but belongs to the program itself.
  void ExcludeChild(pid_t child);

  // The live processes of the tree: workers and their descendants.
  std::vector<ProcessInfo> Members() const;
  // Those of `members` that are workers.
  std::vector<ProcessInfo> Workers(const std::vector<ProcessInfo>& members) const;
  // Whether a process of the tree was adopted when its parent exited.
  bool IsOrphan(const ProcessInfo& member) const {
    return member.parent == self_ && !workers_.contains(member.pid);
  }
  // Live processes of the tree that do not descend from a running worker.
  std::vector<ProcessInfo> Leftovers() const;
  // The worker or adopted orphan that `pid` is or descends from; nullopt if it is not in the tree.
  std::optional<ProcessInfo> RootOf(pid_t pid) const;

  // Sends the signals, in order, once to every process of the tree, including those started
  // meanwhile.
  void Signal(std::initializer_list<int> signals) const;

  // Kills leftovers until there are none, for at most `limit`. Blocks; for use when the loop no
  // longer runs.
  void KillLeftovers(std::chrono::milliseconds limit);

 private:
  bool IsAdopted(const ProcessInfo& child) const;
  // The live processes that satisfy the predicate, and their descendants.
  template <typename Predicate>
  std::vector<ProcessInfo> LiveBelow(Predicate is_root) const;
  // Reaps adopted orphans that have exited; true if there were any.
  bool ReapOrphans();
  bool ReapBehindStrangers();
  void AwaitChild();

  const pid_t self_;
  const pid_t session_;
  const bool was_subreaper_;
  const std::function<void()> on_orphan_;
  // With start times, as a pid may be reused.
  std::set<std::pair<pid_t, std::uint64_t>> strangers_;
  std::set<pid_t> workers_;
  boost::asio::signal_set child_ended_;
  base::Lifetime lifetime_;
};

// The processes of a tree while it is suspended (Ctrl-Z).

// Stops every process of the tree that is not stopped already, and can continue exactly those. May
// miss some if the tree starts processes faster than they are found. Lives on the loop's thread.
class SuspendedTree {
 public:
  explicit SuspendedTree(const WorkerTree& tree);
  void Continue() const;

 private:
  std::vector<ProcessInfo> stopped_;
};

// Notices when a worker is stopped, by `kill -STOP` or a scheduler that suspends jobs, and when it
// continues.

// No polling: the kernel sends SIGCHLD to the parent. So it covers the workers themselves, but not
// their children. A worker held by a debugger does not count as stopped, as the kernel notifies the
// tracer, not the parent. Never reaps a child.
//
// Lives on the loop's thread.
class StopWatch {
 public:
  // Called from the loop, and may destroy the watch. A stop that ends before we look is not
  // reported.
  struct Callbacks {
    std::function<void(pid_t pid, int signal)> on_stopped;
    std::function<void(pid_t pid)> on_continued;
  };

  // Create it after a WorkerTree, which disables SIGCHLD for stopped children; this enables it
  // again.
  StopWatch(boost::asio::io_context& io, Callbacks callbacks);
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

  // `child` must not have been waited for.
  void Add(pid_t child) { watched_.insert(child); }
  // Call it before or just after the child is reaped: its pid may be reused.
  void Remove(pid_t child);

  // The children that are stopped now.
  const std::set<pid_t>& stopped() const { return stopped_; }

 private:
  void AwaitNews();
  // False if the watch is gone.
  bool Look(pid_t child);

  const Callbacks callbacks_;
  std::set<pid_t> watched_;
  std::set<pid_t> stopped_;
  boost::asio::signal_set child_news_;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
