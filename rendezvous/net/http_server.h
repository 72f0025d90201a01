// An HTTP server for GET requests: shows a process to browsers, probes and scrapers.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/status/statusor.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/listening_socket.h"

namespace muster::rendezvous {

struct HttpRequest {
  // Up to the '?', with %-escapes left in.
  std::string path;
  // After the '?', likewise.
  std::string query{};
  // What follows "Bearer " in Authorization; empty: none.
  std::string bearer;
  // The Host header without the port, as written in an address: "localhost", "10.0.0.1", "[::1]".
  // Empty: missing.
  std::string host{};
};

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
  // The answer does not end: after `body`, everything published on `topic` follows (server-sent
  // events).
  bool is_stream = false;
  std::string topic{};
  // The answer comes later, and the rest is ignored: called at once with a callback for the answer,
  // to be invoked once, from the loop and not from within. What it returns is held until then, or
  // until the client no longer waits: after five seconds it gets 504.
  using Reply = std::function<void(HttpAnswer)>;
  std::function<std::shared_ptr<void>(Reply)> later{};
};

// HTTP/1.1 (Boost.Beast), one request per connection. Strangers cannot hold it up: a connection has
// five seconds for its request, of at most 4 KiB, and its answer. When there are 64, one makes room
// for a new one: first one that has been answered, then one whose request is incomplete, then one
// whose answer is being sent; among these, the oldest of the address with the most connections. One
// that waits for its answer is never dropped. Methods other than GET and HEAD get 405, malformed
// requests 400.
//
// Up to 64 streams stay open and make room for one another in the same way. A slow client holds up
// no one: it gets the latest text once it has read what came before, and is dropped if it has not
// read that for half a minute.
//
// Lives on the loop's thread; handlers that the loop runs after its destruction do nothing.
class HttpServer {
 public:
  // Called on the loop for each request; must not destroy the server.
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;

  // Starts listening; port 0 picks a free one. May wait for DNS when the host is a name. The error
  // is a sentence that begins "cannot serve WHAT: ". `io` must outlive the server.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Open(boost::asio::io_context& io,
                                                          const Endpoint& endpoint,
                                                          const std::string& what, Handler handler);

  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Sends `text` to all streams on `topic`, also to those whose answer is still being sent, but not
  // to later ones.
  void Publish(const std::string& topic, std::shared_ptr<const std::string> text);
  // Ends the streams that may not go on, for instance because their token is no longer valid.
  using MayGoOn = std::function<bool(const HttpRequest& asked, const std::string& topic)>;
  void EndStreams(const MayGoOn& may_go_on);
  // The topics that have streams.
  std::set<std::string> Topics() const;

  std::uint16_t port() const { return port_; }

 private:
  class Connection;
  using Connections = std::list<std::shared_ptr<Connection>>;

  HttpServer(boost::asio::io_context& io, Handler handler);

  void Take(boost::asio::ip::tcp::socket socket, const boost::asio::ip::address& from);
  // False: none may be dropped.
  bool MakeRoomForOne();
  // Drops one for which `may_go` is true. False: there is none.
  static bool MakeRoom(Connections& among, const std::function<bool(const Connection&)>& may_go);

  const Handler handler_;
  std::uint16_t port_ = 0;
  // Oldest first: requests, and those that became streams.
  Connections connections_;
  Connections streams_;
  PatientAcceptor acceptor_;
};

}  // namespace muster::rendezvous
