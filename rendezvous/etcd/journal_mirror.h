// What is in etcd, in the memory of a daemon that stands by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "base/async/timer.h"
#include "base/lifetime.h"
#include "rendezvous/etcd/adaptive_timeout.h"
#include "rendezvous/etcd/election.h"
#include "rendezvous/etcd/etcd.h"
#include "rendezvous/etcd/journal_keys.h"
#include "rendezvous/etcd/journal_source.h"
#include "rendezvous/etcd/leader.h"

namespace muster::rendezvous::etcd {

// A journal is read from the memory of a daemon that stood by.

// What was in etcd when this daemon became the leader (JournalMirror), and what it has done since.
// What was handed over is gone, so that nothing is there twice. Several journals may be opened from
// it beside one another, as none has keys of another's, and each of them once.
class MemorySource final : public JournalSource {
 public:
  using Keys = std::map<std::string, std::string>;
  // Calls a function in a later turn of the loop, or never when that has ended.
  using Later = std::function<void(std::function<void()>)>;

  MemorySource(Keys keys, Later later) : keys_(std::move(keys)), later_(std::move(later)) {}

  void Look(std::vector<std::string> keys,
            std::function<void(absl::StatusOr<Values>)> done) override;
  void HandOver(Range range, std::function<absl::Status(const KeyValue&)> take,
                std::function<void(absl::Status)> done) override;
  void Expect(const std::vector<Operation>& operations) override;

  const Keys& keys() const { return keys_; }

 private:
  Keys keys_;
  const Later later_;
  const base::Lifetime lifetime_;
};

// Reads all that is under the root, the journals of tenants and the leader's key included, follows
// it with a watch, and when this daemon is elected gives it away as what its journals are opened
// from. Then only what has happened since the last answer of the watch is left to be waited for.
//
//   idle       --Follow--> reading
//   reading    --the last page--> following
//   following  --what is to come was compacted--> reading
//   each       --an error that does not pass--> pausing
//   pausing    --it is over, or Follow--> reading
//   each       --TakeOver--> over
//
// What does not pass by itself is often mended by somebody: a user's rights in etcd, a limit of
// its. So everything is read anew after a pause, and a longer one after each attempt that fails.
//
// A watch that breaks is begun again from the last revision that it told, that one included, as it
// may have been told in part. To be told changes once more, in their order, does no harm.
//
// Reading. The watch begins at the revision of the first page; each later page is as new as etcd is
// when it is asked for. They could not all be of one revision: the leader compacts up to its last
// one whenever it has written 64 MiB, and a long reading would never come to its end. A change to a
// key that has not been read yet waits for its page, and is dropped if the page is as new. A change
// to a key that has been read is made. So for a while a key may be older than its page was; but
// once the watch has come to the revision of the last page, each key is what the last change to it
// has made it, or, where there was none, what its page said.
//
// Why nothing is missing at the take-over. The leader's key lies under the root. Let C be the
// revision in which it is created when this daemon is elected; nothing else changes in C. The watch
// tells revisions in their order. So once it has told C or a later one, or if the first page was as
// new as that, everything that was done before C has been made here. After C nobody but this leader
// changes anything: a transaction of an earlier leader, however late it arrives, has as its
// condition that the leader's key is the one which that leader created (SequencedWriter), and that
// is gone. Hence a page that was read after C shows what one read in C would have shown.
//
// This leader's own transactions begin when it has been given the memory, and the memory is told of
// those that matter to it (JournalSource::Expect). They are those that complete a batch which the
// last leader has committed but not yet taken over: `staged` and `parts` are keys like any others,
// are found in the memory, and are completed as if they had been found in etcd.
//
// An etcd that was restored from a snapshot has another history. Its revisions come again, and a
// watch that is told to begin at one which is yet to come says nothing until then. So etcd's
// revision is looked at when a watch begins (Etcd::Watch), and each `sequence` has to be the next
// one of its writer, or the first of another; else everything is read anew.
//
// It takes the memory of all keys and values, and some 200 bytes for each key. Lives on the loop's
// thread; its Etcd's watch is its own. It must be destroyed before the Etcd, and not within a
// handler.
class JournalMirror {
 public:
  struct Handlers {
    // It has everything, so many bytes, and follows.
    std::function<void(std::size_t bytes)> follows;
    // It cannot follow at the moment, and goes on trying; told once a minute until it follows
    // again.
    std::function<void(const absl::Status& why)> trouble;
  };

  JournalMirror(Etcd& etcd, std::unique_ptr<Alarm> alarm, const std::string& root,
                MemorySource::Later later, Handlers handlers);
  JournalMirror(const JournalMirror&) = delete;
  JournalMirror& operator=(const JournalMirror&) = delete;
  ~JournalMirror();

  // Begins, if it does not yet; ends a pause.
  void Follow();

  // It has everything.
  bool follows() const { return state_ == State::kFollowing; }

  // This daemon leads by `fence`. Calls `done` once, from the loop or at once: with all that was
  // there when that was decided, or with nullptr when it has not everything yet, and etcd must be
  // read. Nothing is followed any more, and nothing kept.
  void TakeOver(const Fence& fence, std::function<void(std::unique_ptr<MemorySource>)> done);
  // It has been waited for long enough: `done` is called with nullptr, if it has not been called.
  void StopWaiting();

 private:
  enum class State { kIdle, kReading, kFollowing, kPausing, kOver };

  void Read();
  void ReadPage();
  void OnPage(const Outcome& page);
  void WatchAfter(Revision revision);
  void OnChanges(std::vector<Change> changes);
  void OnWatchEnded(const absl::Status& why);
  void Make(Change change);
  bool Follows(const Change& change) const;
  void Fail(const absl::Status& why);
  void Judge();
  void Give(std::unique_ptr<MemorySource> memory);

  Etcd& etcd_;
  const Range range_;
  const MemorySource::Later later_;
  const Handlers handlers_;
  const std::unique_ptr<Alarm> alarm_;

  State state_ = State::kIdle;
  std::uint64_t reading_ = 0;  // which one, as the page of another may be under way
  PageReader pages_;
  std::shared_ptr<PageSize> page_size_;
  std::string unread_;         // all keys before this one have been read
  std::vector<Change> early_;  // to keys from there on, since the last page
  Revision watched_ = 0;       // the watch, or the first page, has told everything before it
  MemorySource::Keys keys_;
  base::Backoff pause_;
  Reminder trouble_;

  Revision leads_since_ = 0;
  std::function<void(std::unique_ptr<MemorySource>)> done_;
  const base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous::etcd
