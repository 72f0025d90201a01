// Measures pipelined requests, sent without waiting for replies.
#pragma once

#include <cstdint>

namespace muster::bench {

// Sends adds, sets and gets, each kind for `seconds` over one connection, and prints how many of
// each were done per second.
void MeasurePipelined(std::uint16_t port, double seconds);

}  // namespace muster::bench
