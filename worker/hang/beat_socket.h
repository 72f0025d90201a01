// The Unix datagram socket on which workers report progress (MUSTER_BEAT_SOCKET).
//
// A beat costs its sender one system call and this process a small share of another. The socket has
// a name in the file system, in a directory that only its owner may enter, not in the abstract
// namespace, where every user of the machine could reach it. With each datagram the kernel says who
// sent it.
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
#include "worker/hang/beat.h"

namespace muster::worker {

// Lives on the loop's thread. It reads a bounded number of datagrams in each turn of the loop, so a
// worker that sends endlessly takes its share of the loop and no more. It may fill the socket's
// queue, though, which is short (net.unix.max_dgram_qlen): then non-blocking senders lose beats.
class BeatSocket {
 public:
  struct Callbacks {
    // A rank has done a step. `pid` is the sender: to be believed only if it is a worker or came
    // from one, as any process of this user may send anything. 0 when it cannot be seen from here
    // (another pid namespace). May destroy the socket.
    std::function<void(const Beat& beat, pid_t pid)> on_beat;
    // Once, at the first datagram that is not a beat; and once, at the first of which a part was
    // ignored.
    std::function<void(const std::string&)> on_warning;
  };

  // Creates the socket, for the owner only, in a directory that the caller has made for this run,
  // closed to others (mode 0700): nothing is looked at there, as each look would be time before the
  // workers start. An error, which names the path, if anything is there already, if `path` is too
  // long for a socket (107 bytes), or if the system fails.
  static absl::StatusOr<std::unique_ptr<BeatSocket>> Open(boost::asio::io_context& io,
                                                          std::string path, Callbacks callbacks);
  // Removes the socket.
  ~BeatSocket();
  BeatSocket(const BeatSocket&) = delete;
  BeatSocket& operator=(const BeatSocket&) = delete;

  // The value of MUSTER_BEAT_SOCKET.
  const std::string& path() const { return path_; }

  // Takes what has arrived by now, a bounded number, and reports it at once: to be called before
  // deciding who is late.
  void Drain();

  // The number of datagrams that were not beats.
  std::size_t malformed() const { return malformed_; }
  // The number of datagrams from other users, which are silently ignored.
  std::size_t foreign() const { return foreign_; }

 private:
  BeatSocket(boost::asio::io_context& io, std::string path, base::UniqueFd socket,
             Callbacks callbacks);
  void AwaitBeats();
  // Takes one; false when there is none, or this object is gone.
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
