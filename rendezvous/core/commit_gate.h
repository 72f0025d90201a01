// Nothing is told before what it follows from is durable.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace muster::rendezvous {

// Whatever a daemon has to tell waits here, in order, for the commits of a journal. One commit at a
// time makes durable everything that had changed when it began (group commit).
//
//   Change() Put(a)   Begin() Change() Put(b)   Committed()      Begin()   Committed()
//                                               Take() -> a                Take() -> b
//
// Without Change(), as where there is no journal, everything may be told at once. Pure; not
// thread-safe.
template <typename T>
class CommitGate {
 public:
  // Something that must be durable has changed: what is put from now on follows from it.
  void Change() { ++changes_; }

  // To be told, after all that was put before it.
  void Put(T item) { waiting_.emplace_back(changes_, std::move(item)); }

  // There is something to commit, and no commit is under way.
  bool NeedsCommit() const { return !committing_ && changes_ > durable_; }

  // A commit of everything that has changed by now is under way.
  void Begin() { committing_ = changes_; }
  // It is durable.
  void Committed() { durable_ = *std::exchange(committing_, std::nullopt); }
  // The commit failed; what it was to hold is still to be committed.
  void Failed() { committing_.reset(); }

  // The next item that may be told, if there is one.
  std::optional<T> Take() {
    std::optional<T> item;
    if (waiting_.empty() || waiting_.front().first > durable_) return item;
    item.emplace(std::move(waiting_.front().second));
    waiting_.pop_front();
    return item;
  }

  // Takes out those of the items that may not be told yet for which `is_meant` is true, in order.
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

  // Nothing waits, and nothing is to be committed.
  bool idle() const { return waiting_.empty() && changes_ == durable_; }

 private:
  std::uint64_t changes_ = 0;
  std::uint64_t durable_ = 0;
  std::optional<std::uint64_t> committing_;
  std::deque<std::pair<std::uint64_t, T>> waiting_;
};

}  // namespace muster::rendezvous
