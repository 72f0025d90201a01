// --ready-fd: how a server tells whoever started it that clients can connect.
#pragma once

#include <cstdint>

namespace muster::rendezvous {

// Writes "PORT\n" to the descriptor and closes it. Nothing for -1; a reader that is gone is warned
// of and otherwise no matter. SIGPIPE must be ignored.
void AnnounceReady(int fd, std::uint16_t port);

}  // namespace muster::rendezvous
