#include "rendezvous/wire/tcpstore_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {

TcpStoreShape ShapeOf(TcpStoreOp op) {
  switch (op) {
    case TcpStoreOp::kValidate:
    case TcpStoreOp::kPing:
      return {.number_bytes = 4};
    case TcpStoreOp::kGet:
    case TcpStoreOp::kDeleteKey:
    case TcpStoreOp::kQueuePop:
    case TcpStoreOp::kQueueLength:
    case TcpStoreOp::kWatchKey:
      return {.strings = 1, .keys = 1};
    case TcpStoreOp::kSet:
    case TcpStoreOp::kAppend:
    case TcpStoreOp::kQueuePush:
      return {.strings = 2, .keys = 1};
    case TcpStoreOp::kCompareSet:
      return {.strings = 3, .keys = 1};
    case TcpStoreOp::kAdd:
    case TcpStoreOp::kBarrier:
      return {.strings = 1, .keys = 1, .number_bytes = 8};
    case TcpStoreOp::kCheck:
    case TcpStoreOp::kWait:
    case TcpStoreOp::kMultiGet:
      return {.counted = true, .strings = 1, .keys = 1};
    case TcpStoreOp::kMultiSet:
      return {.counted = true, .strings = 2, .keys = 1};
    case TcpStoreOp::kGetNumKeys:
    case TcpStoreOp::kCancelWait:
    case TcpStoreOp::kListKeys:
      return {};
  }
  return {};
}

namespace {

// Numbers are copied to and from memory unchanged.
static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kLengthBytes = sizeof(std::uint64_t);
constexpr std::string_view kHello("\0\xce\xf7\x85\x3c", 5);

// Buffer space that a connection keeps between requests.
constexpr std::size_t kKeptRequestBytes = 1024;
constexpr std::size_t kKeptStrings = 16;

template <typename Number>
Number Load(std::string_view bytes, std::size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

template <typename Number>
void Store(Number number, std::string& out) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof bytes);
}

}  // namespace

TcpStoreDecoder::Result TcpStoreDecoder::Next(std::string_view& input, TcpStoreRequest& request) {
  if (is_returned_) StartOver();
  for (;;) {
    const bool in_place = partial_.empty();
    const std::string_view bytes = in_place ? input : partial_;
    const Found found = Scan(bytes);
    if (found == Found::kNonsense) return Result::kBroken;

    if (found == Found::kTooLittle) {
      if (!in_place && !input.empty()) {
        const std::size_t more = std::min(needed_ - partial_.size(), input.size());
        // At most twice what has arrived, and never more than needed.
        if (const std::size_t size = partial_.size() + more; size > partial_.capacity()) {
          partial_.reserve(std::min(needed_, std::max(size, 2 * partial_.capacity())));
        }
        partial_.append(input.substr(0, more));
        input.remove_prefix(more);
        continue;
      }
      if (in_place) partial_ = std::exchange(input, {});
      return Result::kNeedsMore;
    }

    if (append_ == Append::kMaybe) {
      if (in_place ? input.size() > at_ : !input.empty()) {
        Decide(TcpStoreDialect::k21, true);
        op_ = TcpStoreOp::kAppend;
        shape_ = ShapeOf(op_);
        strings_left_ = 1;
        stage_ = Stage::kLength;
        append_ = Append::kNo;
        continue;
      }
      if (hint_.best() != TcpStoreDialect::k1x) {
        if (in_place) partial_ = std::exchange(input, {});
        return Result::kNeedsGrace;
      }
    }
    // A guess: an APPEND's value may be late.
    if (append_ != Append::kNo) Decide(TcpStoreDialect::k1x, false);

    Extract(bytes.substr(0, at_), request);
    if (in_place) input.remove_prefix(at_);
    is_first_ = false;
    is_returned_ = true;
    // The hello is not a request.
    if (op_ != TcpStoreOp::kValidate) return Result::kRequest;
    StartOver();
  }
}

TcpStoreDecoder::Found TcpStoreDecoder::Scan(std::string_view bytes) {
  for (;;) {
    switch (stage_) {
      case Stage::kOpcode: {
        const Found found = Begin(bytes);
        if (found != Found::kAll) return found;
        break;
      }
      case Stage::kCount: {
        if (bytes.size() < at_ + kLengthBytes) return Need(kLengthBytes);
        const auto count = Load<std::uint64_t>(bytes, at_);
        if (!CheckCount(count)) return Found::kNonsense;
        at_ += kLengthBytes;
        strings_left_ = count * shape_.strings;
        stage_ = Stage::kLength;
        break;
      }
      case Stage::kLength:
        if (strings_left_ == 0) {
          stage_ = Stage::kNumber;
          break;
        }
        if (bytes.size() < at_ + kLengthBytes) return Need(kLengthBytes);
        string_bytes_ = Load<std::uint64_t>(bytes, at_);
        if (!CheckLength(string_bytes_)) return Found::kNonsense;
        at_ += kLengthBytes;
        stage_ = Stage::kString;
        break;
      case Stage::kString:
        if (bytes.size() < at_ + string_bytes_) return Need(string_bytes_);
        at_ += string_bytes_;
        --strings_left_;
        stage_ = Stage::kLength;
        break;
      case Stage::kNumber:
        if (bytes.size() < at_ + shape_.number_bytes) return Need(shape_.number_bytes);
        at_ += shape_.number_bytes;
        stage_ = Stage::kEnd;
        break;
      case Stage::kEnd:
        return Found::kAll;
    }
  }
}

TcpStoreDecoder::Found TcpStoreDecoder::Begin(std::string_view bytes) {
  if (bytes.empty()) return Need(1);
  const auto opcode = static_cast<std::uint8_t>(bytes.front());
  std::optional<TcpStoreOp> op;
  if (is_first_ && opcode == 0) {
    if (bytes.size() < kHello.size()) return Need(kHello.size());
    if (bytes.starts_with(kHello)) dialect_ = TcpStoreDialect::k22;
    op = dialect_ == TcpStoreDialect::k22 ? TcpStoreOp::kValidate : TcpStoreOp::kSet;
  } else if (dialect_ == TcpStoreDialect::k22) {
    // Like c10d's servers, rejects a second hello.
    if (opcode != 0 && opcode <= kLastOpcode) op = static_cast<TcpStoreOp>(opcode);
  } else {
    op = LegacyOp(opcode);
  }
  if (!op) return Nonsense(absl::StrCat("opcode ", opcode, " is not known"));

  op_ = *op;
  shape_ = ShapeOf(op_);
  strings_left_ = shape_.strings;
  at_ = 1;
  stage_ = shape_.counted ? Stage::kCount : Stage::kLength;
  return Found::kAll;
}

std::optional<TcpStoreOp> TcpStoreDecoder::LegacyOp(std::uint8_t opcode) {
  if (opcode <= 6) return static_cast<TcpStoreOp>(opcode + 1);
  if (opcode > 11) return std::nullopt;
  if (dialect_ == TcpStoreDialect::kLegacy && hint_.told()) Decide(*hint_.told(), true);
  if (dialect_ == TcpStoreDialect::kLegacy) {
    if (opcode == 8 && hint_.best() != TcpStoreDialect::k21) {
      append_ = Append::kMaybe;
      return TcpStoreOp::kDeleteKey;
    }
    const bool watches = opcode == 7 && is_first_ && hint_.best() != TcpStoreDialect::k21;
    Decide(watches ? TcpStoreDialect::k1x : TcpStoreDialect::k21, !watches);
  }

  if (dialect_ == TcpStoreDialect::k1x) {
    if (opcode == 7) return TcpStoreOp::kWatchKey;
    if (opcode == 8) return TcpStoreOp::kDeleteKey;
    return std::nullopt;
  }
  return static_cast<TcpStoreOp>(opcode + 1);
}

void TcpStoreDecoder::Decide(TcpStoreDialect dialect, bool certain) {
  dialect_ = dialect;
  hint_.Learn(dialect, certain);
}

bool TcpStoreDecoder::CheckCount(std::uint64_t count) {
  if (count <= limits_.keys_per_request) return true;
  Nonsense(absl::StrCat("a request has ", count, " keys, the limit is ", limits_.keys_per_request));
  return false;
}

bool TcpStoreDecoder::CheckLength(std::uint64_t length) {
  // The string's place in its group, counted from the end.
  const std::uint64_t place = (strings_left_ - 1) % shape_.strings;
  const bool is_key = shape_.strings - 1 - place < shape_.keys;
  const std::size_t limit = is_key ? limits_.key_bytes : limits_.value_bytes;
  if (length > limit) {
    Nonsense(absl::StrCat("a ", is_key ? "key" : "value", " has ", length, " bytes, the limit is ",
                          limit));
    return false;
  }
  if (at_ + kLengthBytes + length > limits_.request_bytes) {
    Nonsense(absl::StrCat("a request has more than ", limits_.request_bytes, " bytes"));
    return false;
  }
  return true;
}

TcpStoreDecoder::Found TcpStoreDecoder::Need(std::size_t bytes) {
  needed_ = at_ + bytes;
  return Found::kTooLittle;
}

TcpStoreDecoder::Found TcpStoreDecoder::Nonsense(std::string what) {
  error_ = std::move(what);
  return Found::kNonsense;
}

void TcpStoreDecoder::Extract(std::string_view bytes, TcpStoreRequest& request) {
  strings_.clear();
  std::size_t at = 1 + (shape_.counted ? kLengthBytes : 0);
  const std::size_t end = bytes.size() - shape_.number_bytes;
  while (at < end) {
    const auto length = static_cast<std::size_t>(Load<std::uint64_t>(bytes, at));
    strings_.push_back(bytes.substr(at + kLengthBytes, length));
    at += kLengthBytes + length;
  }
  request.op = op_;
  request.strings = strings_;
  request.number = 0;
  if (shape_.number_bytes == 4) request.number = Load<std::uint32_t>(bytes, end);
  if (shape_.number_bytes == 8) request.number = Load<std::int64_t>(bytes, end);
  request.legacy = dialect_ != TcpStoreDialect::k22;
}

void TcpStoreDecoder::StartOver() {
  // Swapped: assignment would keep the memory.
  if (partial_.capacity() > kKeptRequestBytes) {
    std::string().swap(partial_);
  } else {
    partial_.clear();
  }
  if (strings_.capacity() > kKeptStrings) std::vector<std::string_view>().swap(strings_);
  stage_ = Stage::kOpcode;
  at_ = 0;
  append_ = Append::kNo;
  is_returned_ = false;
}

void AppendByte(std::uint8_t byte, std::string& out) {
  out.push_back(static_cast<char>(byte));
}

void AppendNonce(std::uint32_t nonce, std::string& out) {
  Store(nonce, out);
}

void AppendNumber(std::int64_t number, std::string& out) {
  Store(number, out);
}

void AppendString(std::string_view bytes, std::string& out) {
  Store<std::uint64_t>(bytes.size(), out);
  out.append(bytes);
}

}  // namespace muster::rendezvous
