// Where ssh has its sockets for connections that are kept.
#pragma once

#include <chrono>
#include <optional>

#include "launcher/environment.h"
#include "launcher/hosts/kept_connections.h"

namespace muster::launcher {

// In a folder of $XDG_RUNTIME_DIR, or else of /tmp, that is made here and is this user's alone:
// whoever could write there could be taken for the hosts. The ssh that keeps a connection lives as
// the command that made it does, so only commands that end together share one: in the same control
// group and namespaces, with the same limits. nullopt: there can be no such folder, `time` is zero,
// or this is a worker's process, whose end takes along whatever it has started.
std::optional<KeptConnections> FindKeptConnections(std::chrono::milliseconds time,
                                                   const Environment& environment);

}  // namespace muster::launcher
