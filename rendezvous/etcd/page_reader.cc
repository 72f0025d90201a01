#include "rendezvous/etcd/page_reader.h"

#include <algorithm>
#include <utility>

namespace muster::rendezvous::etcd {
namespace {

// Under way where not all come in time. The second fills the way while the first is taken over.
constexpr std::size_t kPagesOverASlowWay = 2;
// So much smaller are pages for which even the longest time was too short.
constexpr int kSmaller = 4;

}  // namespace

void PageReader::Read(std::vector<Condition> conditions, Range range,
                      std::shared_ptr<PageSize> size,
                      std::function<void(absl::StatusOr<Outcome>)> done) {
  waiting_.push_back(std::make_shared<Page>(
      Page{std::move(conditions), std::move(range), std::move(size), std::move(done)}));
  Next();
}

void PageReader::Next() {
  while (!waiting_.empty() && under_way_ < at_once_) {
    std::shared_ptr<Page> page = std::move(waiting_.front());
    waiting_.pop_front();
    ++under_way_;
    Ask(std::move(page));
  }
}

void PageReader::Ask(std::shared_ptr<Page> page) {
  Transaction transaction{.conditions = page->conditions,
                          .then = {Get{page->range.key, page->range.end, page->size->Next(unit_)}}};
  etcd_.Read(std::move(transaction), times_,
             lifetime_.Guard([this, page = std::move(page), unit = unit_,
                              times = times_](const absl::StatusOr<Outcome>& outcome) {
               --under_way_;
               OnAnswer(page, unit, times, outcome);
             }));
}

void PageReader::OnAnswer(std::shared_ptr<Page> page, int unit, int times,
                          const absl::StatusOr<Outcome>& outcome) {
  const bool is_late = absl::IsDeadlineExceeded(outcome.status());
  if (is_late) BeSlower(*page->size, unit, times);
  if (is_late || (absl::IsInvalidArgument(outcome.status()) && page->size->Shrink())) {
    waiting_.push_front(std::move(page));
    return Next();
  }
  if (outcome.ok() && !outcome->found.empty()) {
    std::size_t bytes = 0;
    for (const KeyValue& key : outcome->found[0].keys) bytes += key.key.size() + key.value.size();
    page->size->Had(outcome->found[0].keys.size(), bytes);
  }
  // Whoever has waited is before the next page of this one.
  Next();
  page->done(outcome);
}

// Of pages that were under way together, the first has said so.
void PageReader::BeSlower(PageSize& size, int unit, int times) {
  at_once_ = kPagesOverASlowWay;
  times_ = std::max(times_, std::min(2 * times, Etcd::kMostTimes));
  if (times < Etcd::kMostTimes) return;
  size.Shrink();
  unit_ = std::min(unit_, std::max(unit / kSmaller, 1));
}

}  // namespace muster::rendezvous::etcd
