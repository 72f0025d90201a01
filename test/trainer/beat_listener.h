// The launcher's end of the socket for beats.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::trainer {

// Buffers at least ten beats that have not been received yet.
class BeatListener {
 public:
  explicit BeatListener(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~BeatListener() { ::close(fd_); }

  // Returns what has arrived so far, without waiting.
  std::vector<std::string> Receive() {
    std::vector<std::string> texts;
    char buffer[256];
    for (ssize_t count; (count = ::recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT)) >= 0;) {
      texts.emplace_back(buffer, static_cast<std::size_t>(count));
    }
    return texts;
  }

 private:
  const int fd_;
};

}  // namespace muster::trainer
