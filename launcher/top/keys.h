// What a key does in `muster top`.
#pragma once

#include "launcher/terminal/key.h"
#include "launcher/terminal/screen.h"
#include "launcher/top/state.h"

namespace muster::launcher {

// Moves the user. Where to depends on what is where on a screen of that size. True: he wants to
// leave.
bool PressKey(TopState& state, const Key& key, const ScreenSize& size);

}  // namespace muster::launcher
