// Raw sockets that talk to a TcpStoreServer on the same thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

namespace muster::rendezvous {

// A TCP socket that listens on a free loopback port.
struct LoopbackListener {
  int fd = -1;  // owned by the caller
  std::uint16_t port = 0;
};
// With `v6`, listens on [::], which also accepts IPv4 connections.
LoopbackListener ListenOnLoopback(bool v6 = false);

// The client's end of a connection. Never blocks, except to connect, for which the server's loop
// need not run.
class StorePeer {
 public:
  // Connects to 127.0.0.1, or with `v6` to ::1.
  StorePeer(boost::asio::io_context& io, std::uint16_t port, bool v6 = false);
  ~StorePeer();
  StorePeer(StorePeer&& other) noexcept;
  StorePeer(const StorePeer&) = delete;
  StorePeer& operator=(const StorePeer&) = delete;

  // Sends all bytes; runs the loop while the kernel would block.
  void Send(std::string_view bytes);
  // Sends as many bytes as the kernel accepts, without running the loop. Returns their number.
  std::size_t SendSome(std::string_view bytes);
  // Shuts down the sending side.
  void EndSending();

  // Runs the loop until `count` bytes have arrived, and returns them; fewer if the connection ends
  // or a minute passes.
  std::string Receive(std::size_t count);
  // Sends `request`, receives as many bytes as `reply` has, and returns whether they are equal to
  // it.
  [[nodiscard]] bool Exchange(std::string_view request, std::string_view reply);
  // Runs the loop until the server has closed the connection; false if it does not within a minute.
  [[nodiscard]] bool IsClosed();

 private:
  // Reads what is available.
  void Read();

  boost::asio::io_context& io_;
  int fd_ = -1;
  std::string received_;
  bool ended_ = false;
};

}  // namespace muster::rendezvous
