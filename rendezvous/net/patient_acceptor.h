// Accepts connections, as many as there is room for.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/status.h"

namespace muster::rendezvous {

// Connections for which there is no room, or no file descriptor, wait in the kernel's queue. Lives
// on the loop's thread.
class PatientAcceptor {
 public:
  // `peer` is known even of a connection that has been reset meanwhile.
  using Take =
      std::function<void(boost::asio::ip::tcp::socket, const boost::asio::ip::address& peer)>;

  // `take` is called with each connection, and must not destroy this. `has_room` is asked before
  // each: once it has said no, Resume is to be called when there is room again. `loop` must outlive
  // this; handlers that it runs later do nothing.
  PatientAcceptor(boost::asio::io_context& loop, Take take, std::function<bool()> has_room);

  // Accepts from a listening socket that is bound to an IPv4 or IPv6 address, in addition to those
  // it was given before. Takes over the descriptor, and closes it even on error: InvalidArgument
  // when it is not such a socket.
  absl::Status Serve(int listening_fd);

  // A connection has ended: there may be room.
  void Resume();

  // The sockets that listen.
  std::vector<int> listening_fds() const;

  // Closes the listening sockets. Idempotent.
  void Close();

 private:
  struct Listener {
    boost::asio::posix::stream_descriptor socket;
    int family = 0;
    bool awaits = false;  // a connection
  };

  void AwaitConnection(const std::shared_ptr<Listener>& listener);
  void AcceptSome(const std::shared_ptr<Listener>& listener);
  // Stops accepting until a connection closes, or for a while: file descriptors may come free
  // elsewhere, too.
  void WaitForFiles(int error);
  void Admit(int fd, int family, const boost::asio::ip::address& peer);

  boost::asio::io_context& loop_;
  const Take take_;
  const std::function<bool()> has_room_;
  // Shared only with their handlers, which in this way know when we no longer listen.
  std::vector<std::shared_ptr<Listener>> listeners_;
  bool out_of_files_ = false;  // and that has been said
  boost::asio::steady_timer retry_;
};

}  // namespace muster::rendezvous
