// Tells the launcher that this rank makes progress (MUSTER_BEAT_SOCKET), so that it can tell a rank
// that hangs from one that is busy.
#pragma once

#include <cstdint>
#include <string>

namespace muster::trainer {

// Sends "beat RANK STEP" in a datagram, without ever waiting: a beat that finds the socket full or
// gone is lost, and the next one does as well. Not thread-safe.
class BeatSender {
 public:
  // `socket` as the launcher names it. Empty, or not a socket's path: nothing is ever sent.
  BeatSender(std::string socket, int rank);
  ~BeatSender();
  BeatSender(const BeatSender&) = delete;
  BeatSender& operator=(const BeatSender&) = delete;

  // This rank has done `step`, which must not be negative. One system call, about 2 us.
  void Send(std::int64_t step);

 private:
  const std::string socket_;
  const int rank_;
  // -1: nothing is to be sent.
  int fd_ = -1;
};

}  // namespace muster::trainer
