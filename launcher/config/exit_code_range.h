// A range of exit codes, as users write it: "70-79".
#pragma once

namespace muster::launcher {

// Exit codes from `first` to `last`.
struct ExitCodeRange {
  int first = 0;
  int last = 0;

  bool operator==(const ExitCodeRange&) const = default;
};

}  // namespace muster::launcher
