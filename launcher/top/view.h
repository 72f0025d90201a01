// What is on the terminal of `muster top`.
#pragma once

#include "launcher/terminal/screen.h"
#include "launcher/top/state.h"
#include "rendezvous/core/types.h"

namespace muster::launcher {

// The smallest terminal on which something can be seen.
inline constexpr ScreenSize kSmallest{.columns = 40, .rows = 12};

// All of a screen of that size, at that time. Nothing in it is wider or lower.
Screen DrawTop(const TopState& state, const ScreenSize& size, rendezvous::TimePoint now);

// How many jobs are shown at once in the list of all.
int JobRows(const ScreenSize& size);

}  // namespace muster::launcher
