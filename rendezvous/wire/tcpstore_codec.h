// The requests of c10d's TCPStore protocol, and their numbers in each version of PyTorch.
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

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// The fields after an opcode: strings, as many as `strings` or, when `counted`, a u64 and that many
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
  kLegacy,  // 1.x or 2.1: not yet distinguished by any request
  k1x,
  k21,
  k22,
};

// What is known about the legacy connections of one store: all ranks of a job run the same version
// of PyTorch. Shared by its connections.
class DialectHint {
 public:
  // An argument (k1x or k21) is the user's choice; nothing that is learned overrides it.
  explicit DialectHint(std::optional<TcpStoreDialect> told = std::nullopt) : told_(told) {}

  std::optional<TcpStoreDialect> told() const { return told_; }
  // The user's choice, or else what was learned.
  std::optional<TcpStoreDialect> best() const { return told_ ? told_ : learned_; }

  // A connection was found to speak `dialect`. Certain knowledge replaces a guess.
  void Learn(TcpStoreDialect dialect, bool certain) {
    if (certain || !learned_) learned_ = dialect;
  }

 private:
  std::optional<TcpStoreDialect> told_;
  std::optional<TcpStoreDialect> learned_;
};

// c10d's TCPStore protocol as bytes: requests out of a stream that may be split anywhere, and
// replies into one. All dialects are understood on one port.
//
// Pure: no I/O, no clock. One decoder belongs to one connection.

// A length or count beyond these breaks the connection before any of it is stored.
struct TcpStoreDecodeLimits {
  std::size_t key_bytes = 8 << 10;
  std::size_t value_bytes = 256 << 20;
  std::size_t keys_per_request = 128 << 10;
  // A whole request: the most a connection can make us buffer.
  std::size_t request_bytes = 256 << 20;
};

// One request. ShapeOf(op) describes its strings, and whether it has a number; the count of a
// counted request is that of its strings.
struct TcpStoreRequest {
  TcpStoreOp op = TcpStoreOp::kPing;
  std::span<const std::string_view> strings;
  std::int64_t number = 0;
  // From a client before 2.2.
  bool legacy = false;
};

// Splits a client's bytes into requests.
//
// The first byte tells the dialect: 0 begins the hello of 2.2 and later. (Of a legacy SET
// it would begin a key of a gigabyte.) Anything else is legacy, and legacy opcodes mean the same
// up to 6. After that:
//   7      as the first request of a connection WATCH_KEY (1.x has a separate connection for it),
//          unless the hint says 2.1; else DELETE_KEY (2.1).
//   8      DELETE_KEY (1.x) has one string, and then the client waits; APPEND (2.1) has two, sent
//          together. So a byte after the key means APPEND. Without one the hint decides;
//          without a hint the session must wait a moment for that byte: kNeedsGrace.
//   9..11  2.1.
// A connection keeps the dialect it was found to speak, and the hint learns it.
//
// A request that is complete in the input is not copied. The bytes of an
// incomplete one are copied once, and no byte is parsed twice.
class TcpStoreDecoder {
 public:
  enum class Result {
    kRequest,
    kNeedsMore,   // all input was consumed
    kNeedsGrace,  // as kNeedsMore, but if nothing arrives within a moment, call EndGrace, then Next
    kBroken,      // no c10d client sends this: see error(). Unrecoverable.
  };

  // `limits` and `hint` must outlive the decoder.
  TcpStoreDecoder(const TcpStoreDecodeLimits& limits, DialectHint& hint)
      : limits_(limits), hint_(hint) {}
  TcpStoreDecoder(const TcpStoreDecoder&) = delete;
  TcpStoreDecoder& operator=(const TcpStoreDecoder&) = delete;

  // Consumes the next request from the front of `input`, which continues what earlier calls
  // consumed. The request is valid until the next call, or until the memory behind `input` is
  // freed.
  Result Next(std::string_view& input, TcpStoreRequest& request);

  // After kNeedsGrace: nothing has arrived. Next now returns a DELETE_KEY.
  void EndGrace() {
    if (append_ == Append::kMaybe) append_ = Append::kMaybeAndLate;
  }

  TcpStoreDialect dialect() const { return dialect_; }
  // True if the last request is stored here, and so is valid until the next call even if `input`'s
  // memory is freed.
  bool holds_request() const { return is_returned_ && !partial_.empty(); }
  // The memory taken by an incomplete request.
  std::size_t buffered() const { return partial_.capacity(); }
  // After kBroken: the problem, as a phrase: "opcode 71 is not known".
  const std::string& error() const { return error_; }

 private:
  // The next field of the current request.
  enum class Stage { kOpcode, kCount, kLength, kString, kNumber, kEnd };
  enum class Found { kAll, kTooLittle, kNonsense };

  Found Scan(std::string_view bytes);
  // Starts the request whose opcode is at the front of `bytes`.
  Found Begin(std::string_view bytes);
  std::optional<TcpStoreOp> LegacyOp(std::uint8_t opcode);
  void Decide(TcpStoreDialect dialect, bool certain);
  bool CheckCount(std::uint64_t count);
  bool CheckLength(std::uint64_t length);
  Found Need(std::size_t bytes);
  Found Nonsense(std::string what);
  void Extract(std::string_view bytes, TcpStoreRequest& request);
  // Prepares for the next request.
  void StartOver();

  const TcpStoreDecodeLimits& limits_;
  DialectHint& hint_;

  TcpStoreDialect dialect_ = TcpStoreDialect::kLegacy;
  bool is_first_ = true;  // no request has been returned yet
  std::string error_;

  // The current request.
  std::string partial_;  // its bytes, if they came in pieces
  Stage stage_ = Stage::kOpcode;
  TcpStoreOp op_ = TcpStoreOp::kPing;
  TcpStoreShape shape_;
  std::size_t at_ = 0;              // bytes before the next field
  std::size_t needed_ = 0;          // bytes up to the end of the next field
  std::uint64_t strings_left_ = 0;  // from the next field on
  std::uint64_t string_bytes_ = 0;
  // Whether it may be an APPEND of 2.1, whose value follows; and whether the value has had time to
  // arrive.
  enum class Append { kNo, kMaybe, kMaybeAndLate } append_ = Append::kNo;
  bool is_returned_ = false;
  std::vector<std::string_view> strings_;
};

// Replies. Each is appended to the bytes for a client.
inline constexpr std::uint8_t kStopWaiting = 0;      // WAIT, BARRIER
inline constexpr std::uint8_t kWaitCancelled = 1;    // CANCEL_WAIT
inline constexpr std::uint8_t kWatchRegistered = 3;  // WATCH_KEY
inline constexpr std::uint8_t kReady = 0;            // CHECK
inline constexpr std::uint8_t kNotReady = 1;
// Events of a watched key begin with one of these.
inline constexpr std::uint8_t kKeyUpdated = 0;
inline constexpr std::uint8_t kKeyCreated = 1;
inline constexpr std::uint8_t kKeyDeleted = 2;

void AppendByte(std::uint8_t byte, std::string& out);
void AppendNonce(std::uint32_t nonce, std::string& out);  // for PING
void AppendNumber(std::int64_t number, std::string& out);
void AppendString(std::string_view bytes, std::string& out);

}  // namespace muster::rendezvous
