// What is in etcd, a page at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/lifetime.h"
#include "rendezvous/etcd/etcd.h"
#include "rendezvous/etcd/journal_keys.h"

namespace muster::rendezvous::etcd {

// For all that read at a time: as many journals as are opened beside one another. Where etcd and
// the way to it are quick, each page is asked for at once. But a page may have megabytes, and over
// a slow way pages that are under way together keep one another from arriving before they are given
// up and asked for again, all of them, for ever. So once one has not come in time
//   - two at a time are asked for, in turn;
//   - each is waited for twice as long as before, up to a limit;
//   - and from that limit on the next ones are smaller, down to a single key, for all who read.
// Pages are not made smaller before, as an etcd that is itself slow may take as long for a small
// one: up to version 3.4 it looks at all keys of a range for each page. What was learned stays.
//
// Lives on the loop's thread.
class PageReader {
 public:
  // The Etcd must outlive it.
  explicit PageReader(Etcd& etcd) : etcd_(etcd) {}

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

  void Next();
  void Ask(std::shared_ptr<Page> page);
  void OnAnswer(std::shared_ptr<Page> page, int unit, int times,
                const absl::StatusOr<Outcome>& outcome);
  void BeSlower(PageSize& size, int unit, int times);

  Etcd& etcd_;
  std::deque<std::shared_ptr<Page>> waiting_;
  std::size_t under_way_ = 0;
  std::size_t at_once_ = std::numeric_limits<std::size_t>::max();
  int times_ = 1;  // as long as usual each is waited for
  int unit_ = PageSize::kUnit;
  const base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous::etcd
