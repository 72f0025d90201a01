// How the guard of a dead agent tells the daemon, over a TCP connection of its own to the daemon's
// port: one line of text, sent by a process that can no longer speak gRPC.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// The first byte of the connection; no other protocol on the port begins with it.
inline constexpr char kFirstOfDeathNotice = 'D';
// No death notice is longer.
inline constexpr std::size_t kMaxDeathNotice = 128;

// "DEAD SESSION\n". The session token proves that it comes from the agent's own host. Where
// connections are encrypted, this is the first time that others can see the token, and the last
// time that it is of use.
std::string FormatDeathNotice(const SessionToken& session);

// nullopt: this is not a death notice, is incomplete, or goes on after it.
std::optional<SessionToken> ParseDeathNotice(std::string_view text);

}  // namespace muster::rendezvous
