#include "trainer/data/tokens/token_check.h"

#include "absl/strings/str_cat.h"

namespace muster::trainer {

std::optional<std::string> ForeignToken(const TokenRange& range, std::int64_t vocabulary) {
  for (std::int64_t i = 0; i < range.size; ++i) {
    const std::uint32_t token = TokenAt(range, i);
    if (token < vocabulary) continue;
    const std::int64_t place = range.first + i;
    return absl::StrCat(
        "read ", range.source, ": its token ", place, ", at byte ", place * BytesOf(range.type),
        ", is ", token, ", which is outside of the vocabulary of ", vocabulary,
        "; --vocabulary or --token-type (", NameOf(range.type), ") does not fit this file");
  }
  return std::nullopt;
}

bool LooksLikeUint32(const TokenRange& range) {
  constexpr std::int64_t kEnough = 16;
  if (range.type != TokenType::kUint16 || range.size < kEnough) return false;
  bool others = false;
  for (std::int64_t i = 0; i + 1 < range.size; i += 2) {
    if (TokenAt(range, i + 1) != 0) return false;
    others |= TokenAt(range, i) != 0;
  }
  return others;
}

}  // namespace muster::trainer
