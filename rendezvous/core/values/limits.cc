#include "rendezvous/core/values/limits.h"

#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/cord.h"

namespace muster::rendezvous {
namespace {

// Stays in this process: the wire carries only a status' code and message.
constexpr absl::string_view kPayload = "muster/limit";

}  // namespace

void LimitCounts::Count(const absl::Status& status) {
  if (status.ok()) return;
  if (const Limit* const limit = LimitOf(status)) Count(*limit);
}

std::uint64_t LimitCounts::of(const Limit& limit) const {
  const auto found = counts_.find(&limit);
  return found == counts_.end() ? 0 : found->second;
}

absl::Status LimitRefusal(const Limit& limit, absl::string_view sentence) {
  absl::Status status = absl::ResourceExhaustedError(sentence);
  status.SetPayload(kPayload, absl::Cord(absl::string_view(limit.name.data(), limit.name.size())));
  return status;
}

const Limit* LimitOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return nullptr;
  const std::string name(*payload);
  for (const Limit* const limit : limits::kAll) {
    if (limit->name == name) return limit;
  }
  return nullptr;
}

}  // namespace muster::rendezvous
