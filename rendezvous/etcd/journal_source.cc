#include "rendezvous/etcd/journal_source.h"

#include <algorithm>

namespace muster::rendezvous::etcd {
namespace {

// Under way where not all come in time. The second fills the way while the first is taken over.
constexpr std::size_t kPagesOverASlowWay = 2;
// So much smaller are pages for which even the longest time was too short.
constexpr int kSmaller = 4;
// Of what each is usually waited for, an eighth.
constexpr std::chrono::milliseconds kQuickPage(125);
// A smaller page says nothing of the way.
constexpr std::size_t kMessagePage = kChunkBytes / 2;
// From so many at once on all are.
constexpr std::size_t kManyPages = 32;
constexpr std::chrono::minutes kForgets(1);

}  // namespace

void PageReader::Read(std::vector<Condition> conditions, Range range,
                      std::shared_ptr<PageSize> size,
                      std::function<void(absl::StatusOr<Outcome>)> done) {
  if (under_way_ == 0 && now_() > last_answer_ + kForgets) pacing_ = {};
  waiting_.push_back(std::make_shared<Page>(
      Page{std::move(conditions), std::move(range), std::move(size), std::move(done)}));
  Next();
}

void PageReader::Next() {
  while (!waiting_.empty() && under_way_ < pacing_.at_once) {
    std::shared_ptr<Page> page = std::move(waiting_.front());
    waiting_.pop_front();
    ++under_way_;
    Ask(std::move(page));
  }
}

void PageReader::Ask(std::shared_ptr<Page> page) {
  Transaction transaction{
      .conditions = page->conditions,
      .then = {Get{page->range.key, page->range.end, page->size->Next(pacing_.unit)}}};
  etcd_.Read(std::move(transaction), pacing_.times,
             lifetime_.Guard([this, page = std::move(page), pacing = pacing_,
                              asked = now_()](const absl::StatusOr<Outcome>& outcome) {
               --under_way_;
               OnAnswer(page, pacing, asked, outcome);
             }));
}

void PageReader::OnAnswer(std::shared_ptr<Page> page, const Pacing& pacing, TimePoint asked,
                          const absl::StatusOr<Outcome>& outcome) {
  last_answer_ = now_();
  const bool is_late = absl::IsDeadlineExceeded(outcome.status());
  if (is_late) BeSlower(*page->size, pacing);
  if (is_late || (absl::IsInvalidArgument(outcome.status()) && page->size->Shrink())) {
    waiting_.push_front(std::move(page));
    return Next();
  }
  if (outcome.ok() && !outcome->found.empty()) {
    std::size_t bytes = 0;
    for (const KeyValue& key : outcome->found[0].keys) bytes += key.key.size() + key.value.size();
    page->size->Had(outcome->found[0].keys.size(), bytes);
    BeQuicker(bytes, last_answer_ - asked);
  }
  // Whoever has waited is before the next page of this one.
  Next();
  page->done(outcome);
}

// Of pages that were under way together, the first has said so.
void PageReader::BeSlower(PageSize& size, const Pacing& was) {
  pacing_.at_once = kPagesOverASlowWay;
  pacing_.times = std::max(pacing_.times, std::min(2 * was.times, Etcd::kMostTimes));
  if (was.times < Etcd::kMostTimes) return;
  size.Shrink();
  pacing_.unit = std::min(pacing_.unit, std::max(was.unit / kSmaller, 1));
}

void PageReader::BeQuicker(std::size_t bytes, std::chrono::nanoseconds took) {
  if (bytes < kMessagePage || took >= pacing_.times * kQuickPage) return;
  if (pacing_.unit < PageSize::kUnit) {
    pacing_.unit = std::min(2 * pacing_.unit, PageSize::kUnit);
  } else if (pacing_.times > 1) {
    pacing_.times /= 2;
  } else if (pacing_.at_once != Pacing::kAll) {
    pacing_.at_once = pacing_.at_once < kManyPages ? 2 * pacing_.at_once : Pacing::kAll;
  }
}

std::function<void(absl::StatusOr<Outcome>)> EtcdSource::Checked(
    std::size_t asked, std::function<void(absl::StatusOr<Outcome>)> done) const {
  return lifetime_.Guard([asked, done = std::move(done)](absl::StatusOr<Outcome> outcome) {
    if (outcome.ok() && !outcome->held) {
      outcome = absl::AbortedError("another daemon leads");
    } else if (outcome.ok() && outcome->found.size() != asked) {
      outcome = absl::InternalError("etcd has answered less");
    }
    done(std::move(outcome));
  });
}

void EtcdSource::Look(std::vector<std::string> keys,
                      std::function<void(absl::StatusOr<Values>)> done) {
  std::vector<Operation> gets;
  for (std::string& key : keys) gets.emplace_back(Get{std::move(key)});
  const std::size_t asked = gets.size();
  etcd_.Transact(
      {.conditions = {StillLeads(fence_)}, .then = std::move(gets)},
      Checked(asked, [done = std::move(done)](const absl::StatusOr<Outcome>& outcome) {
        if (!outcome.ok()) return done(outcome.status());
        Values values;
        for (const Outcome::Found& found : outcome->found) {
          values.push_back(found.keys.empty() ? std::nullopt : std::optional(found.keys[0].value));
        }
        done(std::move(values));
      }));
}

void EtcdSource::HandOver(Range range, std::function<absl::Status(const KeyValue&)> take,
                          std::function<void(absl::Status)> done) {
  // How large jobs are says nothing of what is in their stores.
  HandOverRest(std::move(range), std::make_shared<PageSize>(), std::move(take), std::move(done));
}

void EtcdSource::HandOverRest(Range range, std::shared_ptr<PageSize> size,
                              std::function<absl::Status(const KeyValue&)> take,
                              std::function<void(absl::Status)> done) {
  auto taken = [this, size, end = range.end, take = std::move(take),
                done = std::move(done)](const absl::StatusOr<Outcome>& outcome) {
    if (!outcome.ok()) return done(outcome.status());
    const Outcome::Found& found = outcome->found[0];
    for (const KeyValue& key : found.keys) {
      if (absl::Status status = take(key); !status.ok()) return done(std::move(status));
    }
    if (!found.more || found.keys.empty()) return done(absl::OkStatus());
    HandOverRest({found.keys.back().key + '\0', end}, size, take, done);
  };
  pages_.Read({StillLeads(fence_)}, std::move(range), std::move(size),
              Checked(1, std::move(taken)));
}

}  // namespace muster::rendezvous::etcd
