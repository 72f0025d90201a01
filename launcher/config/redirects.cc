#include "launcher/config/redirects.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace muster::launcher {
namespace {

std::optional<Streams> ReadStreams(absl::string_view text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return std::nullopt;
  return static_cast<Streams>(text[0] - '0');
}

std::optional<int> ReadLocalRank(absl::string_view text) {
  int rank = 0;
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isdigit(c);
  });
  if (!digits || !absl::SimpleAtoi(text, &rank)) return std::nullopt;
  return rank;
}

}  // namespace

absl::StatusOr<Redirects> ParseRedirects(absl::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(
      "is not a stream choice; write 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or local ranks "
      "with theirs such as 0:3,1:2");
  Redirects redirects;
  if (const auto all = ReadStreams(text)) {
    redirects.all = *all;
    return redirects;
  }
  for (const absl::string_view entry : absl::StrSplit(text, ',')) {
    const std::size_t colon = entry.find(':');
    if (colon == absl::string_view::npos) return bad;
    const auto rank = ReadLocalRank(entry.substr(0, colon));
    const auto streams = ReadStreams(entry.substr(colon + 1));
    if (!rank || !streams) return bad;
    redirects.by_local_rank[*rank] = *streams;
  }
  return redirects;
}

}  // namespace muster::launcher
