#include "rendezvous/wire/first_byte.h"

#include <cstdint>

namespace muster::rendezvous {
namespace {

constexpr std::uint64_t kClientHello = 1;  // RFC 8446, 4
constexpr std::uint64_t kServerName = 0;   // RFC 6066, 1.1
constexpr std::uint64_t kHostName = 0;     // RFC 6066, 3

// Consumes TLS fields from the front of a buffer. Once too few bytes are left, everything further
// is 0 and empty.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool is_empty() const { return rest_.empty(); }

  std::uint64_t Number(std::size_t bytes) {
    std::uint64_t number = 0;
    for (const char byte : Take(bytes)) number = number << 8 | static_cast<std::uint8_t>(byte);
    return number;
  }

  std::string_view Take(std::size_t bytes) {
    if (bytes > rest_.size()) {
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  // A vector, prefixed with its length in `length_bytes` bytes.
  std::string_view Vector(std::size_t length_bytes) {
    return Take(static_cast<std::size_t>(Number(length_bytes)));
  }

 private:
  std::string_view rest_;
};

}  // namespace

std::optional<std::size_t> TlsRecordBytes(std::string_view beginning) {
  if (beginning.size() < kTlsHeaderBytes) return std::nullopt;
  Reader reader(beginning);
  const bool is_handshake = reader.Take(1).front() == kFirstOfTls;
  reader.Number(2);  // a version, now meaningless
  const auto bytes = static_cast<std::size_t>(reader.Number(2));
  const std::size_t all = kTlsHeaderBytes + bytes;
  return is_handshake && bytes > 0 && all <= kMostTlsRecordBytes ? all : 0;
}

std::string_view ServerNameIn(std::string_view record) {
  Reader reader(record);
  reader.Take(kTlsHeaderBytes);
  if (reader.Number(1) != kClientHello) return {};
  Reader hello(reader.Vector(3));
  hello.Number(2);  // version
  hello.Take(32);   // random
  hello.Vector(1);  // session id
  hello.Vector(2);  // cipher suites
  hello.Vector(1);  // compression methods
  Reader extensions(hello.Vector(2));
  while (!extensions.is_empty()) {
    const std::uint64_t kind = extensions.Number(2);
    const std::string_view body = extensions.Vector(2);
    if (kind != kServerName) continue;
    Reader names(Reader(body).Vector(2));
    while (!names.is_empty()) {
      const bool is_host = names.Number(1) == kHostName;
      const std::string_view name = names.Vector(2);
      if (is_host) return name;
    }
  }
  return {};
}

}  // namespace muster::rendezvous
