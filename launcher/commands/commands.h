// The commands of `muster`, in the order of its help text. A new one is a file here, whose row its
// header gives, and its place in this list.
#pragma once

#include <vector>

#include "base/cli/command.h"

namespace muster::launcher {

std::vector<base::Command> Commands();

}  // namespace muster::launcher
