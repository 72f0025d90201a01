#include "base/phrases.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/signal_names.h"

namespace muster::base {

std::string Count(std::size_t n, const char* noun) {
  return absl::StrCat(n, " ", noun, n == 1 ? "" : "s");
}

std::string Seconds(std::chrono::nanoseconds duration) {
  const auto ms = std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
  if (ms < 1000) return absl::StrCat(ms, " ms");
  if (ms % 1000 == 0 || ms >= 10'000) return absl::StrCat((ms + 500) / 1000, " s");
  return absl::StrFormat("%.1f s", static_cast<double>(ms) / 1000);
}

std::string ExitPhrase(int exit_code, int signal) {
  return signal != 0 ? absl::StrCat("was killed by ", SignalName(signal))
                     : absl::StrCat("exited with code ", exit_code);
}

std::string ShortList(const std::vector<std::string>& items) {
  return ShortList(items, items.size());
}

std::string ShortList(const std::vector<std::string>& first, std::size_t count) {
  if (count <= kShown + 1) return absl::StrJoin(first, ", ");
  const std::vector<std::string> head(first.begin(), first.begin() + kShown);
  return absl::StrCat(absl::StrJoin(head, ", "), " and ", count - kShown, " more");
}

}  // namespace muster::base
