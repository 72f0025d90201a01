#include "launcher/machine/slurm_node.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "rendezvous/wire/printable.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kMaxReason = 200;

// The rest of the line behind the field's name; empty: there is no such field.
absl::string_view RestBehind(absl::string_view shown, absl::string_view field) {
  for (absl::string_view line : absl::StrSplit(shown, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(line, field)) return line.substr(field.size());
  }
  return {};
}

}  // namespace

std::optional<std::string> WhySlurmDrains(absl::string_view shown) {
  // "MIXED+DRAIN*": a state, its flags, and marks that are of no account here (sinfo(1), "NODE
  // STATE CODES").
  const absl::string_view rest = RestBehind(shown, "State=");
  const absl::string_view states = rest.substr(0, rest.find(' '));
  bool is_drained = false;
  bool is_failing = false;
  for (absl::string_view state : absl::StrSplit(states, '+')) {
    state = state.substr(0, state.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"));
    is_drained |= state == "DRAIN" || state == "DRAINING" || state == "DRAINED";
    is_failing |= state == "FAIL" || state == "FAILING";
  }
  if (!is_drained && !is_failing) return std::nullopt;
  // "bad fan [root@2026-01-31T12:00:00]".
  absl::string_view reason = RestBehind(shown, "Reason=");
  reason = absl::StripAsciiWhitespace(reason.substr(0, reason.rfind('[')));
  const std::string why =
      reason.empty()
          ? ""
          : absl::StrCat(" (", rendezvous::OneLine({reason.data(), reason.size()}, kMaxReason),
                         ")");
  return absl::StrCat(is_failing ? "Slurm expects it to fail" : "Slurm drains it", why);
}

}  // namespace muster::launcher
