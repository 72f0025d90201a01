// How the value of a flag is stored: the setters in the rows of the flag table.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/string_view.h"
#include "launcher/flags/run_flags.h"

namespace muster::launcher {

// What is wrong with a value: a phrase that follows the text it is about ("is not a time; ..."), or
// nothing.
using Problem = std::optional<std::string>;

// Puts the value into `flags`, or says what is wrong with it and leaves `flags` as it was. The
// value of a switch is "1", or what its environment variable says.
using Setter = Problem (*)(absl::string_view value, RunFlags& flags);

// The field that pointers to members lead to, from RunFlags or from its LaunchConfig:
// FieldOf<&LaunchConfig::hang, &HangPolicy::timeout>(flags) is flags.config.hang.timeout.
template <auto kFirst, auto... kRest>
auto& FieldOf(RunFlags& flags) {
  if constexpr (std::is_invocable_v<decltype(kFirst), RunFlags&>) {
    return ((flags.*kFirst).*....*kRest);
  } else {
    return ((flags.config.*kFirst).*....*kRest);
  }
}

// The setter of a flag that only sets a field. `kRead` makes an absl::StatusOr of the text
// (readers.h has the usual ones), and the members say where the value belongs:
//   .set = Store<ReadSeconds, &LaunchConfig::hang, &HangPolicy::timeout>
template <auto kRead, auto... kMembers>
Problem Store(absl::string_view value, RunFlags& flags) {
  auto read = kRead(value);
  if (!read.ok()) return std::string(read.status().message());
  FieldOf<kMembers...>(flags) = *std::move(read);
  return std::nullopt;
}

// The setter of a flag whose value is checked and then ignored.
template <auto kRead>
Problem Check(absl::string_view value, RunFlags&) {
  const auto read = kRead(value);
  if (read.ok()) return std::nullopt;
  return std::string(read.status().message());
}

}  // namespace muster::launcher
