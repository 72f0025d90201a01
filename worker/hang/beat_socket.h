// The Unix datagram socket on which workers say that they make progress (MUSTER_BEAT_SOCKET).
//
// A beat costs its sender one system call and this process a small share of another. The socket has
// a name in the file system, in a directory that only its owner may enter, and not in the abstract
// namespace, where every user of the machine could reach it. The kernel says with each datagram who
// has sent it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "absl/status/statusor.h"
#include "base/lifetime.h"
#include "base/unique_fd.h"

namespace muster::worker {

// Lives on the loop's thread. It reads a bounded number of datagrams in each turn of the loop, so a
// worker that sends without end takes its share of the loop and no more. It may fill the socket's
// queue, though, which is short (net.unix.max_dgram_qlen): then senders that do not wait lose
// beats.
class BeatSocket {
 public:
  struct Callbacks {
    // `rank` says that it has done `step`. `pid` has sent it, a worker or something that came from
    // one, if it is to be believed: any process of this user may say anything. 0 when it cannot be
    // seen from here (another pid namespace). May destroy the socket.
    std::function<void(int rank, std::optional<std::int64_t> step, pid_t pid)> on_beat;
    // Once, at the first datagram that is no beat.
    std::function<void(const std::string&)> on_warning;
  };

  // Makes the socket, for the owner only. The directory of `path` must be there, be this user's and
  // closed to others (mode 0700). A socket that is there already (a run that was killed has left
  // it) is replaced, whatever else is there is not: then, when `path` is too long for a socket (107
  // bytes), and when the system fails, an error that names the path.
  static absl::StatusOr<std::unique_ptr<BeatSocket>> Open(boost::asio::io_context& io,
                                                          std::string path, Callbacks callbacks);
  // Removes the socket.
  ~BeatSocket();
  BeatSocket(const BeatSocket&) = delete;
  BeatSocket& operator=(const BeatSocket&) = delete;

  // The value of MUSTER_BEAT_SOCKET.
  const std::string& path() const { return path_; }

  // Takes what has arrived by now, a bounded number, and tells it at once: to be called before it
  // is judged who is late.
  void Drain();

  // Datagrams that were no beats.
  std::size_t malformed() const { return malformed_; }
  // Datagrams of other users, which are left out without a word.
  std::size_t foreign() const { return foreign_; }

 private:
  BeatSocket(boost::asio::io_context& io, std::string path, base::UniqueFd socket,
             Callbacks callbacks);
  void AwaitBeats();
  // Takes one; false when there is none, or this object is gone.
  bool ReceiveOne();
  void OnMalformed(pid_t pid);

  const std::string path_;
  const Callbacks callbacks_;
  boost::asio::posix::stream_descriptor socket_;
  std::size_t malformed_ = 0;
  std::size_t foreign_ = 0;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
