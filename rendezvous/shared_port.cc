#include "rendezvous/shared_port.h"

#include <sys/socket.h>

#include <chrono>
#include <memory>

#include <spdlog/spdlog.h>

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

// The first byte of HTTP/2's connection preface (RFC 9113, 3.4).
constexpr char kFirstOfHttp2 = 'P';

}  // namespace

SharedPort::SharedPort(boost::asio::io_context& io, std::vector<tcp::acceptor> sockets,
                       Taker take_grpc)
    : take_grpc_(std::move(take_grpc)) {
  for (tcp::acceptor& socket : sockets) {
    doors_.push_back({std::move(socket), boost::asio::steady_timer(io)});
    Accept(doors_.back());
  }
}

SharedPort::~SharedPort() = default;

void SharedPort::Accept(Door& door) {
  door.acceptor.async_accept([this, &door, alive = std::weak_ptr<void>(alive_)](
                                 const error_code& error, Socket connection) {
    if (alive.expired() || error == boost::asio::error::operation_aborted) return;
    if (error == boost::asio::error::no_descriptors || error.value() == ENFILE ||
        error.value() == ENOMEM || error.value() == ENOBUFS) {
      PauseAccepting(door);
      return;
    }
    if (!error) {
      error_code ignored;
      connection.set_option(tcp::no_delay(true), ignored);
      connection.set_option(boost::asio::socket_base::keep_alive(true), ignored);
      AwaitFirstByte(silent_.insert(silent_.end(), std::move(connection)));
    }
    Accept(door);
  });
}

// Without a free descriptor the connection stays in the kernel's queue, and accept() would fail
// again at once, for ever.
void SharedPort::PauseAccepting(Door& door) {
  if (!std::exchange(told_of_pause_, true)) {
    spdlog::warn(
        "no file descriptor is left for a new connection; raise `ulimit -n` of this process");
  }
  door.pause.expires_after(std::chrono::milliseconds(200));
  door.pause.async_wait([this, &door, alive = std::weak_ptr<void>(alive_)](const error_code&) {
    if (!alive.expired()) Accept(door);
  });
}

void SharedPort::AwaitFirstByte(std::list<Socket>::iterator connection) {
  connection->async_wait(Socket::wait_read, [this, connection, alive = std::weak_ptr<void>(alive_)](
                                                const error_code& error) {
    if (alive.expired()) return;
    if (error) {
      silent_.erase(connection);
    } else {
      OnFirstByte(connection);
    }
  });
}

void SharedPort::OnFirstByte(std::list<Socket>::iterator connection) {
  char first = 0;
  const ssize_t count = ::recv(connection->native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return AwaitFirstByte(connection);
  Socket taken = std::move(*connection);
  silent_.erase(connection);
  // The peer has gone, or says what nobody here understands.
  if (count <= 0) return;
  if (first == kFirstOfHttp2) {
    take_grpc_(std::move(taken));
  } else if (take_store_) {
    take_store_(std::move(taken));
  }
}

}  // namespace muster::rendezvous
