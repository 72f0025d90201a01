// Messages that may leave only when they are on disk: the changes that a journal does not hold yet,
// and the messages that follow from them.
#pragma once

#include <algorithm>
#include <chrono>
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

#include "base/check.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// Holds back each message until the change it follows from is durable. Everything a daemon has to
// send waits here, in order, for the commits of a journal. One commit at a time makes durable all
// changes made before it began (group commit).
//
//   Change() Put(a)   Begin() Change() Put(b)   Committed()      Begin()   Committed()
//                                               Take() -> a                Take() -> b
//
// Without Change(), as without a journal, everything may be sent at once. Pure; not thread-safe.
template <typename T>
class CommitGate {
 public:
  // State that must be durable has changed; items put from now on follow from it.
  void Change() { ++changes_; }

  // Queues an item behind all earlier ones.
  void Put(T item) { waiting_.emplace_back(changes_, std::move(item)); }

  // True if there is something to commit, and no commit is under way.
  bool NeedsCommit() const { return !committing_ && changes_ > durable_; }

  // A commit of everything that has changed by now is under way.
  void Begin() {
    MUSTER_CHECK(!committing_);
    committing_ = changes_;
  }
  // It is durable.
  void Committed() {
    MUSTER_CHECK(committing_ && *committing_ >= durable_ && *committing_ <= changes_);
    durable_ = *std::exchange(committing_, std::nullopt);
  }
  // The commit failed; what it was to hold is still to be committed.
  void Failed() {
    MUSTER_CHECK(committing_);
    committing_.reset();
  }

  // The next item that may be sent, if there is one.
  std::optional<T> Take() {
    std::optional<T> item;
    if (waiting_.empty() || waiting_.front().first > durable_) return item;
    MUSTER_CHECK(waiting_.back().first >= waiting_.front().first);
    item.emplace(std::move(waiting_.front().second));
    waiting_.pop_front();
    return item;
  }

  // Removes, in order, the items that may not be sent yet for which `is_meant` is true.
  template <typename Predicate>
  std::deque<T> Withdraw(Predicate is_meant) {
    std::deque<T> withdrawn;
    std::deque<std::pair<std::uint64_t, T>> others;
    for (auto& [follows_from, item] : waiting_) {
      if (follows_from > durable_ && is_meant(item)) {
        withdrawn.push_back(std::move(item));
      } else {
        others.emplace_back(follows_from, std::move(item));
      }
    }
    waiting_ = std::move(others);
    return withdrawn;
  }

  // True if nothing waits, and nothing has to be committed.
  bool idle() const { return waiting_.empty() && changes_ == durable_; }

 private:
  std::uint64_t changes_ = 0;
  std::uint64_t durable_ = 0;
  std::optional<std::uint64_t> committing_;
  std::deque<std::pair<std::uint64_t, T>> waiting_;
};

// One call of one client of a job's store, numbered by the front that takes calls; never reused.
using CallId = std::uint64_t;

// How such a call ended. If its client has cancelled it meanwhile, the answer is dropped.
struct StoreAnswer {
  CallId call = 0;
  absl::Status status;
  // The client asked to wait, so it keeps waiting while the disk is full.
  bool patient = false;
};

// Something that leaves the daemon.
using OutboundMessage = std::variant<Outgoing, StoreAnswer>;

// What has changed, by name: something that changes ten times between two commits is written once.
struct Changes {
  // Jobs that no longer exist, and whose stores are gone; if the same name is also in `jobs` or
  // `keys`, another job of that name has begun.
  std::set<std::string> forgotten;
  std::set<std::string> jobs;
  std::map<std::string, std::set<std::string>> keys;  // by run id
};

// No message is sent before the change it follows from is durable; messages are sent in the order
// in which they were put. One commit at a time holds all changes made before it began.
// Acknowledgements of keep-alives (Heard) are sent at once: a slow disk must not cost an agent its
// lease. While the disk is full, the commit is retried with everything that has changed by then.
// Store answers do not wait for that: clients are told at once that the disk is full (Unavailable),
// and not whether what they wrote or read will ever be durable.
//
// Without a journal everything may be sent at once. Pure; not thread-safe.
class DurableOutbox {
 public:
  explicit DurableOutbox(bool journaled) : journaled_(journaled) {}

  void JobChanged(const std::string& run_id);
  // The job and its store no longer exist. Another job of this name may follow.
  void JobForgotten(const std::string& run_id);
  // These keys of the job's store have changed, if any.
  void StoreChanged(const std::string& run_id, const std::vector<std::string>& keys);

  // Queues a message behind all earlier ones.
  void Put(OutboundMessage message);
  // Puts it ahead of all others: it follows from nothing that has to be on disk.
  void PutAtOnce(OutboundMessage message);
  // The next message that may be sent, if there is one.
  std::optional<OutboundMessage> Take();

  // True if there is something to commit, and no commit is under way.
  bool NeedsCommit() const { return gate_.NeedsCommit(); }
  // Starts a commit of all changes so far: Committed or DiskFull follows.
  const Changes& BeginCommit();
  void Committed();
  // Nothing was written; the commit's changes are still to be committed. More messages may leave
  // now.
  void DiskFull();

  // Changes since the last commit began.
  const Changes& changed() const { return changed_; }
  bool journaled() const { return journaled_; }
  // True if the last commit found the disk full.
  bool full() const { return full_; }
  // True if nothing waits to be sent or committed.
  bool idle() const { return gate_.idle() && prompt_.empty(); }
  // Messages waiting to be sent.
  std::size_t untold() const { return untold_; }

 private:
  const bool journaled_;
  CommitGate<OutboundMessage> gate_;
  std::deque<OutboundMessage> prompt_;  // needs no commit, or no longer
  std::size_t untold_ = 0;
  Changes changed_;
  Changes committing_;  // to be committed again if the disk is full
  bool full_ = false;
};

// Limits how often a large job's changes are written. A batch holds each changed job in full, so
// building one for a job with thousands of nodes takes the loop milliseconds. While those nodes
// join, a batch after every join would leave no time to hear them. So after each batch the loop
// does other work for four times as long as the batch took, up to a second; the next batch holds
// everything that arrived meanwhile. A batch that is quick to build causes no wait.
class CommitPace {
 public:
  // Building a batch took `cost` of the loop's processor time, until `now`.
  void Made(Duration cost, TimePoint now) {
    next_ = cost < kQuick ? TimePoint::min() : now + std::min(kOther * cost, kLongest);
  }
  // When the next batch may be built.
  TimePoint next() const { return next_; }

 private:
  static constexpr Duration kQuick = std::chrono::milliseconds(2);
  static constexpr int kOther = 4;
  static constexpr Duration kLongest = std::chrono::seconds(1);

  TimePoint next_ = TimePoint::min();
};

}  // namespace muster::rendezvous
