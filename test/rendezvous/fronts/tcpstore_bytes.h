// Builds requests and replies of c10d's TCPStore protocol, field by field.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace muster::rendezvous {

template <typename Number>
std::string Raw(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

inline std::string Op(std::uint8_t opcode) {
  return Raw(opcode);
}
inline std::string Number(std::int64_t number) {
  return Raw(number);
}
inline std::string String(std::string_view bytes) {
  return Raw(std::uint64_t{bytes.size()}) + std::string(bytes);
}
inline std::string Strings(const std::vector<std::string>& strings) {
  std::string bytes = Raw(std::uint64_t{strings.size()});
  for (const std::string& string : strings) bytes += String(string);
  return bytes;
}

// Converts hexadecimal text to bytes: "00 ce f7 85 3c", as tcpdump prints them.
inline std::string Hex(std::string_view text) {
  std::string bytes;
  int digits = 0;
  unsigned value = 0;
  for (const char c : text) {
    if (c == ' ' || c == '\n') continue;
    value = value * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    if (++digits % 2 != 0) continue;
    bytes += static_cast<char>(value);
    value = 0;
  }
  return bytes;
}

inline std::string Hello() {
  return Hex("00 ce f7 85 3c");
}

// The opcodes of 2.2 and later. The legacy opcodes up to 6, and 7 to 11 in 2.1, are lower by one.
namespace opcode {
enum : std::uint8_t {
  kSet = 1,
  kCompareSet,
  kGet,
  kAdd,
  kCheck,
  kWait,
  kNumKeys,
  kDeleteKey,
  kAppend,
  kMultiGet,
  kMultiSet,
  kCancelWait,
  kPing,
  kQueuePush,
  kQueuePop,
  kQueueLength,
  kListKeys,
  kBarrier,
};
}  // namespace opcode

// One-byte replies.
inline const std::string kStopped = Op(0);
inline const std::string kCancelled = Op(1);

}  // namespace muster::rendezvous
