#include "rendezvous/etcd/etcd_source.h"

#include <cstddef>
#include <optional>

#include "rendezvous/etcd/journal_keys.h"

namespace muster::rendezvous::etcd {

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
