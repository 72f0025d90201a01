// How the guard of a dead agent tells the daemon, over a TCP connection of its own to the daemon's
// port: one line of text, sent by a process that cannot speak gRPC any more.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// With what the connection begins; no other protocol on the port does.
inline constexpr char kFirstOfDeathNotice = 'D';
// None is longer.
inline constexpr std::size_t kMaxDeathNotice = 128;

// "DEAD SESSION\n". The session token is what proves that it comes from the agent's own host. Where
// connections are encrypted this is the first time that it is seen by others, and the last time
// that it is of use.
std::string FormatDeathNotice(const SessionToken& session);

// Nothing: this is no death notice, or not a whole one.
std::optional<SessionToken> ParseDeathNotice(std::string_view text);

}  // namespace muster::rendezvous
