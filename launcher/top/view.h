// The screen of `muster top`, and its keys.
#pragma once

#include "launcher/top/screen.h"
#include "launcher/top/state.h"
#include "rendezvous/core/values/types.h"

namespace muster::launcher {

// The smallest usable terminal.
inline constexpr ScreenSize kSmallest{.columns = 40, .rows = 12};

// The whole screen at that time, within `size`.
Screen DrawTop(const TopState& state, const ScreenSize& size, rendezvous::TimePoint now);

// How many jobs the list shows at once.
int JobRows(const ScreenSize& size);

// The effect of keys in `muster top`.

// Moves the selection or the view, with the layout of a screen of that size. True if the user
// quits.
bool PressKey(TopState& state, const Key& key, const ScreenSize& size);

}  // namespace muster::launcher
