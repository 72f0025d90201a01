// Names that nothing else has.
#pragma once

#include <string>

namespace muster::base {

// `length` random characters, at most 256, out of [a-z0-9], from the kernel.
std::string RandomName(int length);

}  // namespace muster::base
