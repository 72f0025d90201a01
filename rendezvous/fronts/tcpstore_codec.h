// c10d's TCPStore protocol as bytes: requests out of a stream that may be split anywhere, and
// replies into one. All dialects (tcpstore_dialect.h) are understood on one port.
//
// Pure: no I/O, no clock. One decoder belongs to one connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/wire/tcpstore_dialect.h"

namespace muster::rendezvous {

// A length or count beyond these breaks the connection before a byte of it is kept.
struct TcpStoreDecodeLimits {
  std::size_t key_bytes = 8 << 10;
  std::size_t value_bytes = 8 << 20;
  std::size_t keys_per_request = 128 << 10;
  // A whole request: what a connection may make us keep before the request is complete.
  std::size_t request_bytes = 256 << 20;
};

// One request. ShapeOf(op) says what its strings are, and whether it has a number; the count of a
// counted request is that of its strings.
struct TcpStoreRequest {
  TcpStoreOp op = TcpStoreOp::kPing;
  std::span<const std::string_view> strings;
  std::int64_t number = 0;
  // From a client before 2.2.
  bool legacy = false;
};

// Finds the requests in what a client sends.
//
// The first byte tells the dialect: 0 begins the hello of 2.2 and later. (Of a legacy SET
// it would begin a key of a gigabyte.) Anything else is legacy, and legacy opcodes mean the same
// up to 6. After that:
//   7      as the first request of a connection WATCH_KEY (1.x: it has a connection for nothing
//          else), unless the hint says 2.1; else DELETE_KEY (2.1).
//   8      DELETE_KEY (1.x) has one string and then its client waits; APPEND (2.1) has two, sent
//          together. So if a byte follows the key it is APPEND. If none does, the hint decides;
//          without one the session must wait a moment for that byte: kNeedsGrace.
//   9..11  2.1.
// A connection keeps the dialect it was found to speak, and the hint learns it.
//
// A request that is complete in the input is not copied. Of an incomplete one the bytes so far are
// kept, copied once, and nothing is looked at twice.
class TcpStoreDecoder {
 public:
  enum class Result {
    kRequest,
    kNeedsMore,   // all input was taken in
    kNeedsGrace,  // as kNeedsMore, but if none comes within a moment, call EndGrace, then Next
    kBroken,      // no client of c10d sends this: see error(). There is no way to continue.
  };

  // `limits` and `hint` must outlive the decoder.
  TcpStoreDecoder(const TcpStoreDecodeLimits& limits, DialectHint& hint)
      : limits_(limits), hint_(hint) {}
  TcpStoreDecoder(const TcpStoreDecoder&) = delete;
  TcpStoreDecoder& operator=(const TcpStoreDecoder&) = delete;

  // Takes the next request off the front of `input`, which follows what earlier calls took. The
  // request is valid until the next call, or until what `input` shows goes away.
  Result Next(std::string_view& input, TcpStoreRequest& request);

  // After kNeedsGrace: no more bytes have come. What Next returns now is a DELETE_KEY.
  void EndGrace() {
    if (append_ == Append::kMaybe) append_ = Append::kMaybeAndLate;
  }

  TcpStoreDialect dialect() const { return dialect_; }
  // The memory that an incomplete request takes.
  std::size_t buffered() const { return partial_.capacity(); }
  // After kBroken: what is wrong, as a phrase: "opcode 71 is not known".
  const std::string& error() const { return error_; }

 private:
  // What comes next in the request that is being looked at.
  enum class Stage { kOpcode, kCount, kLength, kString, kNumber, kEnd };
  enum class Found { kAll, kTooLittle, kNonsense };

  Found Scan(std::string_view bytes);
  // By the opcode at the front of `bytes`.
  Found Begin(std::string_view bytes);
  std::optional<TcpStoreOp> LegacyOp(std::uint8_t opcode);
  void Decide(TcpStoreDialect dialect, bool certain);
  bool CheckCount(std::uint64_t count);
  bool CheckLength(std::uint64_t length);
  Found Need(std::size_t bytes);
  Found Nonsense(std::string what);
  void Extract(std::string_view bytes, TcpStoreRequest& request);
  // Prepares for the request after the one that was returned.
  void StartOver();

  const TcpStoreDecodeLimits& limits_;
  DialectHint& hint_;

  TcpStoreDialect dialect_ = TcpStoreDialect::kLegacy;
  bool is_first_ = true;  // nothing has been returned yet
  std::string error_;

  // The request that is being looked at.
  std::string partial_;  // its bytes, when they did not come at once
  Stage stage_ = Stage::kOpcode;
  TcpStoreOp op_ = TcpStoreOp::kPing;
  TcpStoreShape shape_;
  std::size_t at_ = 0;              // its bytes before what comes next
  std::size_t needed_ = 0;          // its bytes up to the end of what comes next
  std::uint64_t strings_left_ = 0;  // from what comes next on
  std::uint64_t string_bytes_ = 0;
  // Whether it may be an APPEND of 2.1, whose value follows; and whether the value had time to
  // come.
  enum class Append { kNo, kMaybe, kMaybeAndLate } append_ = Append::kNo;
  bool is_returned_ = false;
  std::vector<std::string_view> strings_;
};

// Replies. Each appends to what is sent to a client.
inline constexpr std::uint8_t kStopWaiting = 0;      // WAIT, BARRIER
inline constexpr std::uint8_t kWaitCancelled = 1;    // CANCEL_WAIT
inline constexpr std::uint8_t kWatchRegistered = 3;  // WATCH_KEY
inline constexpr std::uint8_t kReady = 0;            // CHECK
inline constexpr std::uint8_t kNotReady = 1;
// The events of a watched key begin with one of these.
inline constexpr std::uint8_t kKeyUpdated = 0;
inline constexpr std::uint8_t kKeyCreated = 1;
inline constexpr std::uint8_t kKeyDeleted = 2;

void AppendByte(std::uint8_t byte, std::string& out);
void AppendNonce(std::uint32_t nonce, std::string& out);  // PING's
void AppendNumber(std::int64_t number, std::string& out);
void AppendString(std::string_view bytes, std::string& out);

}  // namespace muster::rendezvous
