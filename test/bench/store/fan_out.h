// Measures many clients that wait for one key.
#pragma once

#include <cstdint>

namespace muster::bench {

// Lets `clients` connections wait for a key, sets it over another one, and measures the
// milliseconds from before the set until the last client has its answer. Does so `times` times and
// prints a list.
void MeasureFanOut(std::uint16_t port, int clients, int times);

}  // namespace muster::bench
