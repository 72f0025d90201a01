#include "worker/tree/leftovers.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::worker {
namespace {

constexpr std::size_t kNamed = 8;

auto Find(std::vector<ProcessInfo>& processes, const ProcessInfo& wanted) {
  return std::find_if(processes.begin(), processes.end(), [&](const ProcessInfo& info) {
    return info.pid == wanted.pid && info.start_time == wanted.start_time;
  });
}

}  // namespace

bool RemindLeftovers(const std::vector<ProcessInfo>& leftovers, std::vector<ProcessInfo>& before,
                     int first_signal) {
  bool others = false;
  for (const ProcessInfo& leftover : leftovers) {
    const auto found = Find(before, leftover);
    if (found == before.end()) continue;
    const std::optional<Disposition> disposition = DispositionOf(leftover.pid, first_signal);
    if (!disposition.has_value()) continue;
    if (*disposition == Disposition::kCaught) {
      others = true;
      continue;
    }
    SignalProcess(leftover, *disposition == Disposition::kIgnored ? SIGTERM : first_signal);
    before.erase(found);
  }
  return others;
}

std::string Enumerate(const std::vector<ProcessInfo>& processes) {
  const auto named = static_cast<std::ptrdiff_t>(std::min(processes.size(), kNamed));
  std::string text =
      absl::StrJoin(processes.begin(), processes.begin() + named, ", ",
                    [](std::string* out, const ProcessInfo& info) { *out += Describe(info); });
  if (processes.size() > kNamed)
    absl::StrAppend(&text, " and ", processes.size() - kNamed, " more");
  return text;
}

}  // namespace muster::worker
