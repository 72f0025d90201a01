#include "trainer/text/byte_symbols.h"

#include <array>

namespace muster::trainer {
namespace {

constexpr int kNoByte = -1;
// Bytes that are no visible character of Latin-1 are given the characters from here on.
constexpr int kFirstStandIn = 256;
constexpr int kStandIns = 68;

struct Symbols {
  std::array<int, 256> of_byte;
  std::array<int, kFirstStandIn + kStandIns> to_byte;
};

constexpr Symbols MakeSymbols() {
  Symbols symbols{};
  for (int& byte : symbols.to_byte) byte = kNoByte;
  int next = kFirstStandIn;
  for (int byte = 0; byte < 256; ++byte) {
    const bool visible =
        (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    const int symbol = visible ? byte : next++;
    symbols.of_byte[static_cast<std::size_t>(byte)] = symbol;
    symbols.to_byte[static_cast<std::size_t>(symbol)] = byte;
  }
  return symbols;
}

constexpr Symbols kSymbols = MakeSymbols();

}  // namespace

std::string SymbolOf(std::uint8_t byte) {
  const int symbol = kSymbols.of_byte[byte];
  if (symbol < 0x80) return {static_cast<char>(symbol)};
  return {static_cast<char>(0xc0 | symbol >> 6), static_cast<char>(0x80 | (symbol & 0x3f))};
}

std::optional<std::string> BytesOfSymbols(std::string_view symbols) {
  std::string bytes;
  for (std::size_t at = 0; at < symbols.size(); ++at) {
    std::size_t symbol = static_cast<unsigned char>(symbols[at]);
    if (symbol >= 0x80) {
      // All symbols lie below U+0144: two bytes of UTF-8.
      if (at + 1 == symbols.size() || (symbol & 0xe0) != 0xc0) return std::nullopt;
      symbol = (symbol & 0x1f) << 6 | (static_cast<unsigned char>(symbols[++at]) & 0x3f);
    }
    if (symbol >= kSymbols.to_byte.size() || kSymbols.to_byte[symbol] == kNoByte) {
      return std::nullopt;
    }
    bytes += static_cast<char>(kSymbols.to_byte[symbol]);
  }
  return bytes;
}

}  // namespace muster::trainer
