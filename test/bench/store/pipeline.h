// Requests sent without waiting for the replies to those before.
#pragma once

#include <cstdint>

namespace muster::bench {

// Sends adds, sets and gets, each kind for so many seconds over one connection, and prints how many
// of each were carried out in a second.
void MeasurePipelined(std::uint16_t port, double seconds);

}  // namespace muster::bench
