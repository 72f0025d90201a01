// The requests of c10d's TCPStore protocol, and how PyTorch's versions number them.
//
//   PyTorch       dialect
//   1.9  - 2.0    k1x     0..6 as below less one, 7 WATCH_KEY, 8 DELETE_KEY
//   2.1           k21     0..6 as below less one, 7 DELETE_KEY, 8 APPEND, 9 MULTI_GET,
//                         10 MULTI_SET, 11 CANCEL_WAIT
//   2.2  - today  k22     the numbers of TcpStoreOp, after a hello of five bytes
// (c10d TCPStore.hpp of 1.13.1, TCPStoreBackend.hpp of 2.1.2, 2.2.0 to 2.14.1: QueryType.)
//
// A field is a number of the client's byte order, which is little-endian, or a string: a u64 with
// its length, then its bytes.
#pragma once

#include <cstdint>
#include <optional>

namespace muster::rendezvous {

// The numbers are those of k22; kWatchKey, which k22 does not have, comes after them.
enum class TcpStoreOp : std::uint8_t {
  kValidate = 0,
  kSet = 1,
  kCompareSet = 2,
  kGet = 3,
  kAdd = 4,
  kCheck = 5,
  kWait = 6,
  kGetNumKeys = 7,
  kDeleteKey = 8,
  kAppend = 9,
  kMultiGet = 10,
  kMultiSet = 11,
  kCancelWait = 12,
  kPing = 13,
  kQueuePush = 14,
  kQueuePop = 15,
  kQueueLength = 16,
  kListKeys = 17,
  kBarrier = 18,
  kWatchKey,
};

// The last opcode of k22. Since 2.2 the enumeration has only grown at its end.
inline constexpr std::uint8_t kLastOpcode = 18;

// What follows an opcode: strings, as many as `strings` or, when `counted`, a u64 and that many
// times `strings`; then a number of `number_bytes` bytes. Of each group of strings the first `keys`
// are keys and the others are values.
struct TcpStoreShape {
  bool counted = false;
  std::uint8_t strings = 0;
  std::uint8_t keys = 0;
  std::uint8_t number_bytes = 0;
};

TcpStoreShape ShapeOf(TcpStoreOp op);

enum class TcpStoreDialect {
  kLegacy,  // 1.x or 2.1: no request has told them apart yet
  k1x,
  k21,
  k22,
};

// What is known about the legacy connections of one store, since all ranks of a job run one version
// of PyTorch. Shared by its connections.
class DialectHint {
 public:
  // With an argument (k1x or k21) the user has said it, and nothing that is learned changes it.
  explicit DialectHint(std::optional<TcpStoreDialect> told = std::nullopt) : told_(told) {}

  std::optional<TcpStoreDialect> told() const { return told_; }
  // What the user said, or else what was learned.
  std::optional<TcpStoreDialect> best() const { return told_ ? told_ : learned_; }

  // A connection was found to speak `dialect`. What is certain replaces what was a guess.
  void Learn(TcpStoreDialect dialect, bool certain) {
    if (certain || !learned_) learned_ = dialect;
  }

 private:
  std::optional<TcpStoreDialect> told_;
  std::optional<TcpStoreDialect> learned_;
};

}  // namespace muster::rendezvous
