#include "rendezvous/etcd/memory_source.h"

#include <cstddef>
#include <optional>
#include <variant>

namespace muster::rendezvous::etcd {
namespace {

// In one turn of the loop, which keeps the lease alive meanwhile: some ten milliseconds, for many
// small keys as for few large ones.
constexpr std::size_t kBytesInATurn = 8 << 20;
constexpr std::size_t kKeysInATurn = 10'000;

}  // namespace

void MemorySource::Look(std::vector<std::string> keys,
                        std::function<void(absl::StatusOr<Values>)> done) {
  Values values;
  for (const std::string& key : keys) {
    const auto found = keys_.find(key);
    values.push_back(found == keys_.end() ? std::nullopt : std::optional(found->second));
  }
  done(std::move(values));
}

void MemorySource::HandOver(Range range, std::function<absl::Status(const KeyValue&)> take,
                            std::function<void(absl::Status)> done) {
  std::size_t bytes = 0;
  std::size_t keys = 0;
  for (auto next = keys_.lower_bound(range.key); next != keys_.end() && next->first < range.end;) {
    if (bytes > kBytesInATurn || keys == kKeysInATurn) {
      return later_(lifetime_.Guard([this, range = std::move(range), take = std::move(take),
                                     done = std::move(done)] { HandOver(range, take, done); }));
    }
    Keys::node_type node = keys_.extract(next++);
    KeyValue key{.key = std::move(node.key()), .value = std::move(node.mapped())};
    ++keys;
    bytes += key.key.size() + key.value.size();
    if (absl::Status status = take(key); !status.ok()) return done(std::move(status));
  }
  done(absl::OkStatus());
}

void MemorySource::Expect(const std::vector<Operation>& operations) {
  for (const Operation& operation : operations) {
    if (const auto* put = std::get_if<Put>(&operation)) {
      keys_[put->key] = put->value;
    } else if (const auto* gone = std::get_if<Delete>(&operation)) {
      const auto first = keys_.lower_bound(gone->key);
      keys_.erase(first, keys_.lower_bound(gone->end.empty() ? gone->key + '\0' : gone->end));
    }
  }
}

}  // namespace muster::rendezvous::etcd
