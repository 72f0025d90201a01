// How much has come over a TCP connection.
#pragma once

#include <cstdint>

namespace muster::rendezvous {

// Bytes since it began, read or not; 0 for what is no TCP connection. (tcp(7), TCP_INFO;
// Linux 4.1.)
std::uint64_t ReceivedBytes(int fd);

}  // namespace muster::rendezvous
