// Connections to hosts that ssh keeps for a while after the command that made them, so that the
// next needs none of its own (ssh_config(5): ControlMaster, ControlPath, ControlPersist).
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

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

}  // namespace muster::launcher
