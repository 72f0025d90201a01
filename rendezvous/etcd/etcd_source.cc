#include "rendezvous/etcd/etcd_source.h"

#include <cstddef>
#include <optional>

#include "rendezvous/etcd/journal_keys.h"

namespace muster::rendezvous::etcd {

void EtcdSource::Read(std::vector<Operation> gets,
                      std::function<void(absl::StatusOr<Outcome>)> done) {
  const std::size_t asked = gets.size();
  etcd_.Transact({.conditions = {StillLeads(fence_)}, .then = std::move(gets)},
                 lifetime_.Guard([asked, done = std::move(done)](absl::StatusOr<Outcome> outcome) {
                   if (outcome.ok() && !outcome->held) {
                     outcome = absl::AbortedError("another daemon leads");
                   } else if (outcome.ok() && outcome->found.size() != asked) {
                     outcome = absl::InternalError("etcd has answered less");
                   }
                   done(std::move(outcome));
                 }));
}

void EtcdSource::Look(std::vector<std::string> keys,
                      std::function<void(absl::StatusOr<Values>)> done) {
  std::vector<Operation> gets;
  for (std::string& key : keys) gets.emplace_back(Get{std::move(key)});
  Read(std::move(gets), [done = std::move(done)](const absl::StatusOr<Outcome>& outcome) {
    if (!outcome.ok()) return done(outcome.status());
    Values values;
    for (const Outcome::Found& found : outcome->found) {
      values.push_back(found.keys.empty() ? std::nullopt : std::optional(found.keys[0].value));
    }
    done(std::move(values));
  });
}

void EtcdSource::HandOver(Range range, std::function<absl::Status(const KeyValue&)> take,
                          std::function<void(absl::Status)> done) {
  std::vector<Operation> page = {Get{range.key, range.end, page_size_.keys()}};
  Read(std::move(page), [this, range = std::move(range), take = std::move(take),
                         done = std::move(done)](const absl::StatusOr<Outcome>& outcome) {
    if (absl::IsInvalidArgument(outcome.status()) && page_size_.Shrink()) {
      return HandOver(range, take, done);
    }
    if (!outcome.ok()) return done(outcome.status());
    const Outcome::Found& found = outcome->found[0];
    std::size_t bytes = 0;
    for (const KeyValue& key : found.keys) {
      bytes += key.key.size() + key.value.size();
      if (absl::Status status = take(key); !status.ok()) return done(std::move(status));
    }
    page_size_.Had(found.keys.size(), bytes);
    if (!found.more || found.keys.empty()) return done(absl::OkStatus());
    HandOver({found.keys.back().key + '\0', range.end}, take, done);
  });
}

}  // namespace muster::rendezvous::etcd
