#include "worker/hang/beat.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace muster::worker {
namespace {

// absl's own parser takes signs and spaces, too.
template <typename Number>
bool ParseNumber(absl::string_view text, Number* number) {
  return !text.empty() && absl::ascii_isdigit(static_cast<unsigned char>(text[0])) &&
         absl::SimpleAtoi(text, number);
}

}  // namespace

std::optional<Beat> ParseBeat(std::string_view text) {
  if (text.size() > kMaxBeat) return std::nullopt;
  const absl::string_view line =
      absl::StripTrailingAsciiWhitespace(absl::string_view(text.data(), text.size()));
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  Beat beat;
  if (words.size() < 2 || words.size() > 3 || words[0] != "beat") return std::nullopt;
  if (!ParseNumber(words[1], &beat.rank)) return std::nullopt;
  if (words.size() == 3 && !ParseNumber(words[2], &beat.step.emplace())) return std::nullopt;
  return beat;
}

}  // namespace muster::worker
