// Names that nobody else has.
#pragma once

#include <string>

namespace muster::base {

// `length` random characters out of [a-z0-9], from the system's random device.
std::string RandomName(int length);

}  // namespace muster::base
