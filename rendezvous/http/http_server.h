// Answers GET, to whoever asks: what is shown of a process to browsers, probes and scrapers.
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
#include "rendezvous/net/patient_acceptor.h"

namespace muster::rendezvous {

struct HttpRequest {
  // Without what follows a '?', and still with its %-escapes.
  std::string path;
  // What follows it, in the same way.
  std::string query{};
  // What follows "Bearer " in Authorization; empty: nothing does.
  std::string bearer;
  // Whom it is for, without a port and as it is written in an address: "localhost", "10.0.0.1",
  // "[::1]". Empty: it does not say.
  std::string host{};
};

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  // The answer has no end: after `body` follows what is published on `topic` (server-sent events).
  bool is_stream = false;
  std::string topic{};
  // There is no answer yet, and the rest does not count: called at once with what is to be called
  // with the answer, once, from the loop and not from within. What it returns is held until then,
  // or until nobody waits any more: after five seconds he is told 504.
  using Reply = std::function<void(HttpAnswer)>;
  std::function<std::shared_ptr<void>(Reply)> later{};
};

// HTTP/1.1 (Boost.Beast), and one request for each connection. A stranger can hold up nobody: a
// connection has five seconds for its request, of 4 KiB at most, and its answer, and when there are
// 16 the oldest of the address that has most of them makes room for a new one. Another method than
// GET and HEAD is answered 405, what is no HTTP 400.
//
// Streams stay, 64 of them, and make room for one another in the same way. Who does not read is not
// waited for: he is told what was published last once he has read what came before, and dropped
// when he has not read it for half a minute.
//
// Lives on the loop's thread; handlers that the loop runs later do nothing.
class HttpServer {
 public:
  // Asked on the loop for each request; must not destroy the server.
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;

  // Listens from now on; port 0 takes a free one. May wait for DNS when the host is a name. The
  // error is a sentence that begins "cannot serve WHAT: ". `io` must outlive the server.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Open(boost::asio::io_context& io,
                                                          const Endpoint& endpoint,
                                                          const std::string& what, Handler handler);

  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Tells all streams on `topic`, also those whose answer is still on its way. Who asks later is
  // not told.
  void Publish(const std::string& topic, std::shared_ptr<const std::string> text);
  // Ends the streams that may not go on, as what they were asked for with no longer counts, say.
  using MayGoOn = std::function<bool(const HttpRequest& asked, const std::string& topic)>;
  void EndStreams(const MayGoOn& may_go_on);
  // What streams there are on.
  std::set<std::string> Topics() const;

  std::uint16_t port() const { return port_; }

 private:
  class Connection;
  using Connections = std::list<std::shared_ptr<Connection>>;

  HttpServer(boost::asio::io_context& io, Handler handler);

  void Take(boost::asio::ip::tcp::socket socket, const boost::asio::ip::address& from);
  static void MakeRoom(Connections& among);

  const Handler handler_;
  std::uint16_t port_ = 0;
  // The oldest first: those that ask, and those that have been answered with a stream.
  Connections connections_;
  Connections streams_;
  PatientAcceptor acceptor_;
};

}  // namespace muster::rendezvous
