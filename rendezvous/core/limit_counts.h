// How often somebody was refused, or cut off, for a limit; and refusals that say for which.
#pragma once

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rendezvous/core/limits.h"

namespace muster::rendezvous {

// A value; only of limits that have a name. Not thread-safe.
class LimitCounts {
 public:
  void Count(const Limit& limit, std::uint64_t refused = 1) { counts_[&limit] += refused; }
  // If it is such a refusal.
  void Count(const absl::Status& status);

  std::uint64_t of(const Limit& limit) const;

 private:
  std::map<const Limit*, std::uint64_t> counts_;
};

// ResourceExhausted with that sentence, for who would break the limit.
absl::Status LimitRefusal(const Limit& limit, absl::string_view sentence);
// The limit of such a refusal; null: it is none.
const Limit* LimitOf(const absl::Status& status);

}  // namespace muster::rendezvous
