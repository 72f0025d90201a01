// --ready-fd: how a server tells whoever started it that clients can connect.
#pragma once

#include <cstdint>

namespace muster::rendezvous {

// Writes "PORT\n" to the descriptor and closes it. Does nothing for -1. If the reader is gone, it
// only warns. SIGPIPE must be ignored.
void AnnounceReady(int fd, std::uint16_t port);

}  // namespace muster::rendezvous
