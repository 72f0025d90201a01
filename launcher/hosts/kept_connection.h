// A connection to a host that ssh keeps for a while after the command that made it, so that the
// next needs none of its own (ssh_config(5): ControlMaster, ControlPath, ControlPersist).
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "launcher/environment.h"
#include "launcher/hosts/host_list.h"

namespace muster::launcher {

// How long one is kept if nobody says otherwise (--ssh-persist).
inline constexpr std::chrono::seconds kSshPersist{60};

struct KeptConnection {
  // The path of ssh's socket for it.
  std::string socket;
  // How long it is kept while nothing uses it.
  std::chrono::seconds time{};
  // The socket is there. It may have been left by an ssh that was killed, which ssh sees by itself.
  bool is_there = false;
};

// Where the connection from this machine to `host` is kept: in a folder of $XDG_RUNTIME_DIR, or
// else of /tmp, that is made here and is this user's alone. Whoever could write there could be
// taken for the host. nullopt: there can be no such folder, or no socket in it, or `time` is zero.
std::optional<KeptConnection> FindKeptConnection(const Host& host, std::chrono::seconds time,
                                                 const Environment& environment);

}  // namespace muster::launcher
