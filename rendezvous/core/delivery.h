// What may be told only when it is on disk: the changes that a journal does not hold yet, and what
// follows from them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "rendezvous/core/commit_gate.h"
#include "rendezvous/core/directive.h"

namespace muster::rendezvous {

// One call of one client of a job's store, numbered by whoever takes calls; never reused.
using CallId = std::uint64_t;

// How such a call ended. If its client has cancelled it meanwhile, it is for nobody.
struct StoreAnswer {
  CallId call = 0;
  absl::Status status;
  // The client asked to wait, so it is left to wait while the disk is full.
  bool patient = false;
};

// Something that leaves the daemon.
using Telling = std::variant<Outgoing, StoreAnswer>;

// What has changed, by name: what changes ten times between two commits is written once.
struct Changes {
  // Jobs that no longer exist, nor do their stores; if the same name is also in `jobs` or `keys`,
  // another job of that name has begun.
  std::set<std::string> forgotten;
  std::set<std::string> jobs;
  std::map<std::string, std::set<std::string>> keys;  // by run id
};

// Nothing is told before what it follows from is durable; everything is told in the order in which
// it was put. One commit at a time holds all that had changed when it began. Acknowledgements of
// keep-alives (Heard) are told at once: a slow disk must not cost anybody its lease. While the disk
// is full, the commit is tried again, with what has changed by then. Answers of stores do not wait
// for that: their clients are told at once that the disk is full (Unavailable), and not whether
// what they have written or read will ever be on it.
//
// Without a journal everything may be told at once. Pure; not thread-safe.
class Delivery {
 public:
  explicit Delivery(bool journaled) : journaled_(journaled) {}

  void JobChanged(const std::string& run_id);
  // The job and its store no longer exist. Another job of this name may follow.
  void JobForgotten(const std::string& run_id);
  // These keys of the job's store have changed, if any.
  void StoreChanged(const std::string& run_id, const std::vector<std::string>& keys);

  // To be told, after all that was put before it.
  void Put(Telling telling);
  // The same before all others, as it follows from nothing that has to be on disk.
  void PutAtOnce(Telling telling);
  // The next item that may be told, if there is one.
  std::optional<Telling> Take();

  // There is something to commit, and no commit is under way.
  bool NeedsCommit() const { return gate_.NeedsCommit(); }
  // A commit of what has changed by now is under way: Committed or DiskFull follows.
  const Changes& BeginCommit();
  void Committed();
  // Nothing was written; what the commit was to hold is still to be committed. More may be told.
  void DiskFull();

  // What has changed since the last commit began.
  const Changes& changed() const { return changed_; }
  bool journaled() const { return journaled_; }
  // The last commit found no room on the disk.
  bool full() const { return full_; }
  // Nothing waits to be told or committed.
  bool idle() const { return gate_.idle() && prompt_.empty(); }
  // What waits to be told.
  std::size_t untold() const { return untold_; }

 private:
  const bool journaled_;
  CommitGate<Telling> gate_;
  std::deque<Telling> prompt_;  // does not wait for a commit, or no longer
  std::size_t untold_ = 0;
  Changes changed_;
  Changes committing_;  // to be committed again if the disk is full
  bool full_ = false;
};

}  // namespace muster::rendezvous
