// `muster _host`: Muster on a host of a launch tree, started by Muster on another one. Not for
// people.
#pragma once

namespace muster::launcher {

int HostCommand();

}  // namespace muster::launcher
