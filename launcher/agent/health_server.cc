#include "launcher/agent/health_server.h"

#include <chrono>
#include <string>
#include <utility>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include "absl/strings/str_cat.h"
#include "rendezvous/net/listening_socket.h"

namespace muster::launcher {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::asio::ip::tcp;

constexpr std::size_t kConnections = 16;
constexpr std::size_t kHeaderBytes = 4096;
constexpr std::chrono::seconds kPatience(5);

http::response<http::string_body> Response(http::status status, const char* text) {
  http::response<http::string_body> response(status, 11);
  response.set(http::field::content_type, "text/plain");
  response.keep_alive(false);
  response.body() = text;
  response.prepare_payload();
  return response;
}

http::response<http::string_body> ResponseTo(http::verb verb, beast::string_view target,
                                             bool ready) {
  const beast::string_view path = target.substr(0, target.find('?'));
  const bool asks_ready = path == "/healthz/ready";
  if (!asks_ready && path != "/healthz") return Response(http::status::not_found, "");
  if (verb != http::verb::get && verb != http::verb::head) {
    auto response = Response(http::status::method_not_allowed, "");
    response.set(http::field::allow, "GET, HEAD");
    return response;
  }
  auto response = !asks_ready || ready ? Response(http::status::ok, "ok\n")
                                       : Response(http::status::service_unavailable, "not ready\n");
  // The length is what GET would be told.
  if (verb == http::verb::head) response.body().clear();
  return response;
}

}  // namespace

// From a request to the end of its answer. Alive while it is in the server's list or one of its
// handlers waits.
class HealthServer::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, HealthServer& server)
      : stream_(std::move(socket)), server_(&server) {
    request_.header_limit(kHeaderBytes);
    request_.body_limit(0);
  }

  void Start(std::list<std::shared_ptr<Connection>>::iterator place) {
    place_ = place;
    stream_.expires_after(kPatience);
    http::async_read_header(stream_, buffer_, request_,
                            [self = shared_from_this()](beast::error_code error, std::size_t) {
                              if (self->server_ != nullptr) self->OnRequest(error);
                            });
  }

  // The server no longer knows it.
  void Drop() {
    server_ = nullptr;
    stream_.close();
  }

 private:
  void OnRequest(beast::error_code error) {
    // Who says what is no HTTP is told so; who falls silent, or has gone, is not.
    static const auto& kNoHttp = http::make_error_code(http::error::bad_method).category();
    if (error && (error.category() != kNoHttp || error == http::error::end_of_stream ||
                  error == http::error::partial_message)) {
      return End();
    }
    response_ = error
                    ? Response(http::status::bad_request, "")
                    : ResponseTo(request_.get().method(), request_.get().target(), server_->ready_);
    http::async_write(stream_, response_,
                      [self = shared_from_this()](beast::error_code, std::size_t) {
                        if (self->server_ != nullptr) self->AwaitGoodbye();
                      });
  }

  // To close a socket with unread bytes would reset it, and take the answer away from its reader.
  void AwaitGoodbye() {
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kHeaderBytes),
                            [self = shared_from_this()](beast::error_code error, std::size_t) {
                              if (self->server_ == nullptr) return;
                              if (error) return self->End();
                              self->AwaitGoodbye();
                            });
  }

  void End() {
    auto& connections = std::exchange(server_, nullptr)->connections_;
    stream_.close();
    connections.erase(place_);
  }

  beast::tcp_stream stream_;
  // Null: dropped, or at its end.
  HealthServer* server_;
  std::list<std::shared_ptr<Connection>>::iterator place_;
  beast::flat_buffer buffer_{2 * kHeaderBytes};
  http::request_parser<http::empty_body> request_;
  http::response<http::string_body> response_;
};

absl::StatusOr<std::unique_ptr<HealthServer>> HealthServer::Open(
    boost::asio::io_context& io, const rendezvous::Endpoint& endpoint) {
  auto sockets = rendezvous::ListenAt(io, endpoint);
  absl::Status status = sockets.status();
  std::unique_ptr<HealthServer> server(new HealthServer(io));
  if (sockets.ok()) {
    server->port_ = rendezvous::PortOf(*sockets);
    for (tcp::acceptor& socket : *sockets) {
      status.Update(server->acceptor_.Serve(socket.release()));
    }
  }
  if (status.ok()) return server;
  return absl::Status(status.code(), absl::StrCat("cannot serve /healthz: ", status.message()));
}

HealthServer::HealthServer(boost::asio::io_context& io)
    : acceptor_(
          io,
          [this](tcp::socket socket, const boost::asio::ip::address&) { Take(std::move(socket)); },
          [] { return true; }) {}

HealthServer::~HealthServer() {
  acceptor_.Close();
  for (const auto& connection : connections_) connection->Drop();
}

void HealthServer::Take(tcp::socket socket) {
  if (connections_.size() >= kConnections) {
    connections_.front()->Drop();
    connections_.pop_front();
  }
  const auto place = connections_.insert(connections_.end(),
                                         std::make_shared<Connection>(std::move(socket), *this));
  (*place)->Start(place);
}

}  // namespace muster::launcher
