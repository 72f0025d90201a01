#include "rendezvous/net/ready_fd.h"

#include <unistd.h>

#include <string>

#include <spdlog/spdlog.h>

namespace muster::rendezvous {

void AnnounceReady(int fd, std::uint16_t port) {
  if (fd < 0) return;
  const std::string line = std::to_string(port) + "\n";
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    spdlog::warn("write to --ready-fd={}: nobody reads it", fd);
  }
  close(fd);
}

}  // namespace muster::rendezvous
