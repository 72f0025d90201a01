// What one client feels: how long a request takes, and how fast a large value comes and goes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::bench {

// One connection, one request at a time: adds for so many seconds, then gets of 32 bytes for as
// long, then a value of `value_bytes` that is set (an add follows, whose answer says that it is
// there) and got `times` times. Prints the medians, in microseconds and in MiB/s.
void MeasureOneByOne(std::uint16_t port, double seconds, std::size_t value_bytes, int times);

}  // namespace muster::bench
