// Everything that the workers of one group have started, directly or indirectly, wherever it went:
// into a process group or session of its own, or to another parent when its own had ended.
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

// While this object lives, the program is a child subreaper: when a process below it loses its
// parent, it becomes the program's child instead of leaving the tree. Such adopted orphans are
// waited for here as they end, each by its pid, so that other parts of the program keep their own
// children. An adopted orphan is told from those by its session: a worker leads one of its own, and
// no process can come back into ours.
//
// Nothing polls: the last of the tree to end is always our child, so SIGCHLD tells. Lives on the
// loop's thread; one object at a time, while workers run.
class WorkerTree {
 public:
  // Children that the program already has are strangers to the tree, whatever they do. `on_orphan`
  // is called from the loop after adopted orphans have ended.
  WorkerTree(boost::asio::io_context& io, std::function<void()> on_orphan);
  // The program is no longer a subreaper, unless it was one before.
  ~WorkerTree();
  WorkerTree(const WorkerTree&) = delete;
  WorkerTree& operator=(const WorkerTree&) = delete;

  // A worker that was started, until it has been waited for or given up. The tree never waits for a
  // worker.
  void AddWorker(pid_t worker) { workers_.insert(worker); }
  void RemoveWorker(pid_t worker);
  // A child that belongs to the program itself, though it leads a session.
  void AddStranger(pid_t child);

  // The live processes of the tree: workers, and what came from workers of this group.
  std::vector<ProcessInfo> Members() const;
  // Those of them that do not descend from a running worker.
  std::vector<ProcessInfo> Leftovers() const;
  // The worker or adopted orphan that `pid` is, or descends from; nullopt when it is not in the
  // tree.
  std::optional<ProcessInfo> RootOf(pid_t pid) const;

  // Sends the signals, in order, to every process of the tree, once each, including those that are
  // started meanwhile.
  void Signal(std::initializer_list<int> signals) const;

  // SIGKILL to all leftovers until there are none, for `limit` at most. Blocks: for when the loop
  // no longer runs.
  void KillLeftovers(std::chrono::milliseconds limit);

 private:
  bool IsAdopted(const ProcessInfo& child) const;
  // The live processes that satisfy the predicate or descend from one that does.
  template <typename Predicate>
  std::vector<ProcessInfo> LiveBelow(Predicate is_root) const;
  // Waits for adopted orphans that have ended; true when there was one.
  bool ReapOrphans();
  bool ReapBehindStrangers();
  void AwaitChild();

  const pid_t self_;
  const pid_t session_;
  const bool was_subreaper_;
  const std::function<void()> on_orphan_;
  // With their start times, as a pid alone may come back as another process.
  std::set<std::pair<pid_t, std::uint64_t>> strangers_;
  std::set<pid_t> workers_;
  boost::asio::signal_set child_ended_;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
