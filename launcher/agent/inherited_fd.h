// A descriptor that whoever starts an agent leaves open for it, and names in a variable.
#pragma once

#include <optional>
#include <string>

#include "launcher/environment.h"

namespace muster::launcher {

// The descriptor, where the variable `name` names one that is open and not one of 0, 1, 2; it is
// made close-on-exec. The variable is taken out: workers do not have the descriptor.
std::optional<int> TakeInheritedFd(Environment& environment, const std::string& name);

}  // namespace muster::launcher
