// Checks whether SQLite's write-ahead log (the -wal file) is intact before SQLite reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace muster::rendezvous {

// SQLite accepts a log up to its first frame with a wrong checksum, and silently drops the rest.
// That is right for the torn end that a power failure leaves, but a bit flipped in the middle would
// cost every acknowledged write after it. This tells the two apart.
//
// The journal syncs the log after each transaction, and empties it at each start. So when the power
// fails, at most one transaction, the last, may be incomplete. If at or after the first bad frame
// there was a whole transaction, and then part of another, the frame must have been good once. What
// looks just like a torn end: damage to the last transaction, a lost block that reaches up to it,
// and a log cut off between two frames.
//
// SQLite's other journal, the rollback journal, would need no such check. But it syncs three times
// per transaction where the log syncs once, for a quarter of the commits per second (80 to 155
// against 320 to 710, with transactions of 600 bytes on a virtual disk).
//
// Format: sqlite.org/fileformat2.html, section 4.
struct WalCheck {
  enum class State {
    kWhole,    // every frame is part of a committed transaction (or the log is empty)
    kTorn,     // whole up to `offset`; the rest was never acknowledged, and SQLite cuts it
    kDamaged,  // an acknowledged write is damaged, at `offset`
  };
  State state = State::kWhole;
  std::uint64_t offset = 0;
  // For kDamaged, the problem: "the frame at byte 4152 ...".
  std::string what = {};
};

// Reads `size` bytes at `offset` into `into`; false if it cannot.
using WalReader = std::function<bool(std::uint64_t offset, std::size_t size, unsigned char* into)>;

// One pass over a log of `size` bytes. DataLoss when `read` fails.
absl::StatusOr<WalCheck> CheckWal(const WalReader& read, std::uint64_t size);

// The same for a file; a missing file counts as whole. FailedPrecondition when it cannot be opened
// or is a symbolic link, DataLoss when it cannot be read.
absl::StatusOr<WalCheck> CheckWalFile(const std::string& path);

}  // namespace muster::rendezvous
