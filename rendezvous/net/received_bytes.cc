#include "rendezvous/net/received_bytes.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstring>

namespace muster::rendezvous {

std::uint64_t ReceivedBytes(int fd) {
  // Of the kernel's struct tcp_info (linux/tcp.h), of which glibc's ends before it:
  // tcpi_bytes_received.
  constexpr std::size_t kOffset = 128;
  std::uint64_t received = 0;
  std::byte info[kOffset + sizeof received] = {};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &size) != 0 || size < sizeof info) return 0;
  std::memcpy(&received, info + kOffset, sizeof received);
  return received;
}

}  // namespace muster::rendezvous
