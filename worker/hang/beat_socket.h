// The Unix datagram socket for workers' progress reports (MUSTER_BEAT_SOCKET).
//
// A beat costs its sender one system call, and this process a small part of another. The socket is
// a file in a directory that only its owner can enter, not in the abstract namespace, which is open
// to every user of the machine. The kernel adds the sender to each datagram.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "absl/status/statusor.h"
#include "base/lifetime.h"
#include "base/unique_fd.h"
#include "worker/hang/hang_watch.h"

namespace muster::worker {

// Lives on the loop's thread. Reads a bounded number of datagrams per turn of the loop, so that a
// worker that sends endlessly cannot block it. Such a worker can fill the socket's short queue
// (net.unix.max_dgram_qlen), though: nonblocking senders then lose beats.
class BeatSocket {
 public:
  struct Callbacks {
    // A rank has completed a step. `pid` is the sender; check that it is a worker or its
    // descendant, as any process of this user may send anything. 0 if it is not visible (another
    // pid namespace). May destroy the socket.
    std::function<void(const Beat& beat, pid_t pid)> on_beat;
    // Called once for the first datagram that is not a beat, and once for the first that was
    // ignored in part.
    std::function<void(const std::string&)> on_warning;
  };

  // Creates the socket with mode 0600 in a directory that the caller created for this run with mode
  // 0700. The directory is not checked, as that would delay the start of the workers. An error
  // names the path: it exists already, is too long for a socket (107 bytes), or the system failed.
  static absl::StatusOr<std::unique_ptr<BeatSocket>> Open(boost::asio::io_context& io,
                                                          std::string path, Callbacks callbacks);
  // Removes the socket.
  ~BeatSocket();
  BeatSocket(const BeatSocket&) = delete;
  BeatSocket& operator=(const BeatSocket&) = delete;

  // The value of MUSTER_BEAT_SOCKET.
  const std::string& path() const { return path_; }

  // Reads and reports what has arrived, up to a limit; call it before deciding which ranks are
  // late.
  void Drain();

  // The number of datagrams that were not beats.
  std::size_t malformed() const { return malformed_; }
  // The number of datagrams from other users, which are ignored.
  std::size_t foreign() const { return foreign_; }

 private:
  BeatSocket(boost::asio::io_context& io, std::string path, base::UniqueFd socket,
             Callbacks callbacks);
  void AwaitBeats();
  // Reads one; false if there is none, or this object is gone.
  bool ReceiveOne();
  void OnMalformed(pid_t pid);
  void OnIgnored(const std::string& word, pid_t pid);

  const std::string path_;
  const Callbacks callbacks_;
  boost::asio::posix::stream_descriptor socket_;
  std::size_t malformed_ = 0;
  bool ignored_any_ = false;
  std::size_t foreign_ = 0;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
