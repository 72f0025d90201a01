// Which of a worker's output streams a flag such as --redirects or --tee chooses, for each local
// rank.
#pragma once

#include <map>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::launcher {

// torchrun's numbers: a set of streams as two bits.
enum class Streams { kNone = 0, kStdout = 1, kStderr = 2, kBoth = 3 };

inline bool HasStdout(Streams streams) {
  return (static_cast<int>(streams) & 1) != 0;
}
inline bool HasStderr(Streams streams) {
  return (static_cast<int>(streams) & 2) != 0;
}

struct Redirects {
  // For local ranks that `by_local_rank` does not name.
  Streams all = Streams::kNone;
  std::map<int, Streams> by_local_rank;

  Streams For(int local_rank) const {
    const auto found = by_local_rank.find(local_rank);
    return found == by_local_rank.end() ? all : found->second;
  }

  bool operator==(const Redirects&) const = default;
};

// Reads `3` (every local rank) or `0:3,12:1` (those local ranks; the others nothing). Unlike
// torchrun's, a local rank may have several digits. An error's message is a phrase that follows the
// text it is about.
absl::StatusOr<Redirects> ParseRedirects(absl::string_view text);

}  // namespace muster::launcher
