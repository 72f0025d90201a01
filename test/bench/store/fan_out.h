// Many clients that wait for one key.
#pragma once

#include <cstdint>

namespace muster::bench {

// Lets `clients` connections wait for a key, sets it over another one, and prints the milliseconds
// from before the set until the answer of the last of them was there; a list, as it is done `times`
// times.
void MeasureFanOut(std::uint16_t port, int clients, int times);

}  // namespace muster::bench
