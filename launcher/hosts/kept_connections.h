// Connections to hosts that ssh keeps for a while after the command that made them, so that the
// next needs none of its own (ssh_config(5): ControlMaster, ControlPath, ControlPersist).
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "launcher/environment.h"

namespace muster::launcher {

// How long one is kept if nobody says otherwise (--ssh-persist).
inline constexpr std::chrono::seconds kSshPersist{60};

struct KeptConnections {
  // What the paths of ssh's sockets for them begin with.
  std::string prefix;
  // How long one is kept while nothing uses it. What made it says so.
  std::chrono::seconds time{};
};

// A socket's path may be so long; ssh makes it with a dot and 16 characters behind it first.
inline constexpr std::size_t kMaxControlPath = 90;

// In a folder of $XDG_RUNTIME_DIR, or else of /tmp, that is made here and is this user's alone:
// whoever could write there could be taken for the hosts. The ssh that keeps a connection lives as
// the command that made it does, so only commands that end together share one: in the same control
// group and namespaces, with the same limits. nullopt: there can be no such folder, `time` is zero,
// or this is a worker's process, whose end takes along whatever it has started.
std::optional<KeptConnections> FindKeptConnections(std::chrono::seconds time,
                                                   const Environment& environment);

}  // namespace muster::launcher
