// What a journal in etcd is read from when it is opened.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "base/lifetime.h"
#include "rendezvous/etcd/etcd.h"
#include "rendezvous/etcd/journal_keys.h"
#include "rendezvous/etcd/leader.h"

namespace muster::rendezvous::etcd {

// Etcd itself (EtcdSource), or the memory of a daemon that stood by (MemorySource). Nobody changes
// what it holds but the leader that opens the journal. One call at a time for each journal; a
// callback comes from the loop or from within the call, and may destroy the journal that called,
// but not the source.
class JournalSource {
 public:
  virtual ~JournalSource() = default;

  // The value of each of the keys; nullopt: there is no such key.
  using Values = std::vector<std::optional<std::string>>;
  virtual void Look(std::vector<std::string> keys,
                    std::function<void(absl::StatusOr<Values>)> done) = 0;

  // Hands over everything in the range, by key, until `take` returns an error; then calls `done`,
  // with that error, one of reading, or OK. What has been handed over may be gone from the source.
  virtual void HandOver(Range range, std::function<absl::Status(const KeyValue&)> take,
                        std::function<void(absl::Status)> done) = 0;

  // Whoever opens the journal has these operations done in etcd before the next call.
  virtual void Expect(const std::vector<Operation>& operations) = 0;
};

// What is in etcd, a page at a time.

// For all that read at a time: as many journals as are opened beside one another. Where etcd and
// the way to it are quick, each page is asked for at once. But a page may have megabytes, and over
// a slow way pages that are under way together keep one another from arriving before they are given
// up and asked for again, all of them, for ever. So once one has not come in time
//   - two at a time are asked for, in turn;
//   - each is waited for twice as long as before, up to a limit;
//   - and from that limit on the next ones are smaller, down to a single key, for all who read.
// Pages are not made smaller before, as an etcd that is itself slow may take as long for a small
// one: up to version 3.4 it looks at all keys of a range for each page.
//
// What was learned stays while pages come as slowly. It may have been a moment in which etcd stood
// still: a page that comes in an eighth of the time lets the next ones be twice as large, or be
// waited for half as long, or be twice as many. And after a minute in which nothing was read
// nothing is known.
//
// Lives on the loop's thread.
class PageReader {
 public:
  using TimePoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

  // The Etcd must outlive it; `now` says what time it is.
  PageReader(Etcd& etcd, std::function<TimePoint()> now) : etcd_(etcd), now_(std::move(now)) {}

  // Reads the first page of what is in the range, if the conditions hold, and says so to `size`,
  // which knows of the pages before it. Calls `done` from the loop with what a transaction with one
  // Get finds, or with an error of Etcd::Transact.
  void Read(std::vector<Condition> conditions, Range range, std::shared_ptr<PageSize> size,
            std::function<void(absl::StatusOr<Outcome>)> done);

 private:
  struct Page {
    std::vector<Condition> conditions;
    Range range;
    std::shared_ptr<PageSize> size;
    std::function<void(absl::StatusOr<Outcome>)> done;
  };

  // How pages are asked for, after what is known of etcd and the way to it.
  struct Pacing {
    static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
    std::size_t at_once = kAll;
    int times = 1;  // as long as usual each is waited for
    int unit = PageSize::kUnit;
  };

  void Next();
  void Ask(std::shared_ptr<Page> page);
  void OnAnswer(std::shared_ptr<Page> page, const Pacing& pacing, TimePoint asked,
                const absl::StatusOr<Outcome>& outcome);
  void BeSlower(PageSize& size, const Pacing& was);
  void BeQuicker(std::size_t bytes, std::chrono::nanoseconds took);

  Etcd& etcd_;
  const std::function<TimePoint()> now_;
  std::deque<std::shared_ptr<Page>> waiting_;
  std::size_t under_way_ = 0;
  Pacing pacing_;
  TimePoint last_answer_{};
  const base::Lifetime lifetime_;
};

// A journal is read from etcd.

// Reads for the leader whose fence it is, and for nobody else: Aborted when another leads. Other
// errors are Etcd::Transact's. The Etcd must outlive it, and so must the PageReader, which is that
// of all sources at a time.
class EtcdSource final : public JournalSource {
 public:
  EtcdSource(Etcd& etcd, PageReader& pages, Fence fence)
      : etcd_(etcd), pages_(pages), fence_(std::move(fence)) {}

  void Look(std::vector<std::string> keys,
            std::function<void(absl::StatusOr<Values>)> done) override;
  void HandOver(Range range, std::function<absl::Status(const KeyValue&)> take,
                std::function<void(absl::Status)> done) override;
  // It is there when it has been done.
  void Expect(const std::vector<Operation>&) override {}

 private:
  // Goes on with the rest of a range, from which pages of that size were read before.
  void HandOverRest(Range range, std::shared_ptr<PageSize> size,
                    std::function<absl::Status(const KeyValue&)> take,
                    std::function<void(absl::Status)> done);
  // Hands on what is found, if it is of this leader and as much as was asked for.
  std::function<void(absl::StatusOr<Outcome>)> Checked(
      std::size_t asked, std::function<void(absl::StatusOr<Outcome>)> done) const;

  Etcd& etcd_;
  PageReader& pages_;
  const Fence fence_;
  const base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous::etcd
