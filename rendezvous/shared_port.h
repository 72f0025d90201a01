// One port for the rendezvous and for the workers' store: torchrun's static mode names only one.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/statusor.h"
#include "rendezvous/endpoint.h"

namespace muster::rendezvous {

// Accepts connections and hands each on by its first byte, which it leaves unread: HTTP/2, and so
// gRPC, always begins with "PRI"; no dialect of c10d's TCPStore begins with a 'P' (its opcodes are
// small numbers: c10d TCPStoreBackend.hpp, QueryType). A connection that says nothing waits here,
// as c10d's clients before PyTorch 2.1 each keep one open that never says a word.
//
// Lives on the loop's thread.
class SharedPort {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  // Takes over a connection of which nothing has been read.
  using Taker = std::function<void(Socket)>;

  // `sockets` as ListenAt makes them. `take_grpc` is called from the loop.
  SharedPort(boost::asio::io_context& io, std::vector<boost::asio::ip::tcp::acceptor> sockets,
             Taker take_grpc);
  // Closes what listens and what waits.
  ~SharedPort();
  SharedPort(const SharedPort&) = delete;
  SharedPort& operator=(const SharedPort&) = delete;

  // Who takes what is not gRPC from now on; null: it is closed, as nobody serves a store here.
  void OnStoreConnection(Taker take_store) { take_store_ = std::move(take_store); }

  // Connections that have said nothing yet.
  std::size_t silent() const { return silent_.size(); }

 private:
  // A socket that listens, and the timer of its pause when descriptors run out.
  struct Door {
    boost::asio::ip::tcp::acceptor acceptor;
    boost::asio::steady_timer pause;
  };

  void Accept(Door& door);
  void AwaitFirstByte(std::list<Socket>::iterator connection);
  void OnFirstByte(std::list<Socket>::iterator connection);
  void PauseAccepting(Door& door);

  std::list<Door> doors_;
  const Taker take_grpc_;
  Taker take_store_;
  std::list<Socket> silent_;
  bool told_of_pause_ = false;
  // Handlers that find it gone do nothing.
  std::shared_ptr<void> alive_ = std::make_shared<char>();
};

}  // namespace muster::rendezvous
