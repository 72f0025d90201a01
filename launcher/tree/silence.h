// How a host of a launch tree knows that its parent is still there, and that one that it is.
#pragma once

#include <chrono>

namespace muster::launcher {

// Each says so as often as this.
inline constexpr std::chrono::seconds kBeat(5);

// And is gone when it has said nothing for so long. A connection that breaks is noticed at once;
// this is for those that end in silence: a machine without power, a cable that was pulled.
inline constexpr std::chrono::seconds kSilence(30);

}  // namespace muster::launcher
