// Raw sockets against a TcpStoreServer on the same thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

namespace muster::rendezvous {

// A TCP socket that listens on a free port of loopback.
struct LoopbackListener {
  int fd = -1;  // whoever gets it closes it
  std::uint16_t port = 0;
};
// With `v6`, on [::], which takes IPv4 connections, too.
LoopbackListener ListenOnLoopback(bool v6 = false);

// A client's end of a connection. Never blocks but to connect, which the kernel does by itself.
class Peer {
 public:
  // To 127.0.0.1; with `v6`, to ::1.
  Peer(boost::asio::io_context& io, std::uint16_t port, bool v6 = false);
  ~Peer();
  Peer(Peer&& other) noexcept;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Sends it all, running the loop where the kernel would block.
  void Send(std::string_view bytes);
  // Sends as much as the kernel takes without running the loop. Returns how much.
  std::size_t SendSome(std::string_view bytes);
  // Sends no more.
  void EndSending();

  // Runs the loop until `count` bytes have come, and returns them. Fewer if the connection ends or
  // none come within a minute.
  std::string Receive(std::size_t count);
  // Sends, and receives as many bytes as `reply` has: whether they are those.
  [[nodiscard]] bool Exchange(std::string_view request, std::string_view reply);
  // Runs the loop until the server has ended the connection; false if it does not within a minute.
  [[nodiscard]] bool IsClosed();

 private:
  // Reads what there is.
  void Read();

  boost::asio::io_context& io_;
  int fd_ = -1;
  std::string received_;
  bool ended_ = false;
};

}  // namespace muster::rendezvous
