// The flags of `muster run` and `muster launch`, one row each, with one file per group. A row is
// all there is to a flag that only sets a value: its names, its environment variable, its lines in
// the help text, how its text is read, and the field of LaunchConfig that it sets. A flag that
// affects several fields sets one of RunFlags, and flags.cc derives the rest.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/flags/flag.h"

namespace muster::launcher {

struct FlagGroup {
  absl::string_view heading;
  absl::Span<const Flag> rows;
};

// The groups, in the order of the help text.
FlagGroup NodeFlags();
FlagGroup HostFlags();
FlagGroup RendezvousFlags();
FlagGroup ProgramFlags();
FlagGroup FailureFlags();
FlagGroup OutputFlags();
FlagGroup OtherFlags();

// All of their rows, including those of `launch` (Flag::of).
absl::Span<const Flag> RunFlagTable();

}  // namespace muster::launcher
