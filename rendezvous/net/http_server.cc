#include "rendezvous/net/http_server.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>

#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster::rendezvous {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::asio::ip::tcp;

constexpr std::size_t kConnections = 64;
constexpr std::size_t kHeaderBytes = 4096;
constexpr std::chrono::seconds kPatience(5);
constexpr std::size_t kMostStreams = 64;
constexpr std::chrono::seconds kReaderPatience(30);

HttpRequest ToRequest(const http::request<http::empty_body>& message) {
  const beast::string_view target = message.target();
  const std::size_t mark = std::min(target.find('?'), target.size());
  HttpRequest request{.path = std::string(target.substr(0, mark)), .bearer = ""};
  if (mark < target.size()) request.query = std::string(target.substr(mark + 1));
  const beast::string_view field = message[http::field::authorization];
  const absl::string_view authorization(field.data(), field.size());
  // The scheme's name is not case-sensitive (RFC 9110, 11.1).
  constexpr absl::string_view kScheme = "bearer ";
  if (absl::StartsWithIgnoreCase(authorization, kScheme)) {
    request.bearer = std::string(authorization.substr(kScheme.size()));
  }
  const beast::string_view host = message[http::field::host];
  const std::size_t colon = host.rfind(':');
  const bool has_port =
      colon != beast::string_view::npos && host.find(']', colon) == beast::string_view::npos;
  request.host = std::string(has_port ? host.substr(0, colon) : host);
  return request;
}

http::response<http::string_body> ToResponse(HttpAnswer answer) {
  http::response<http::string_body> response(static_cast<http::status>(answer.status), 11);
  response.set(http::field::content_type, answer.type);
  for (const auto& [name, value] : answer.headers) response.set(name, value);
  response.keep_alive(false);
  response.body() = std::move(answer.body);
  // A stream ends with its connection.
  if (!answer.is_stream) response.prepare_payload();
  return response;
}

}  // namespace

// From a request to the end of its answer. Kept alive by the server's list or by its own handlers.
class HttpServer::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, boost::asio::ip::address from, HttpServer& server)
      : stream_(std::move(socket)), from_(std::move(from)), server_(&server) {
    request_.header_limit(kHeaderBytes);
    request_.body_limit(0);
  }

  void Start(Connections::iterator place) {
    place_ = place;
    among_ = &server_->connections_;
    stream_.expires_after(kPatience);
    http::async_read_header(stream_, buffer_, request_,
                            [self = shared_from_this()](beast::error_code error, std::size_t) {
                              if (self->server_ != nullptr) self->OnRequest(error);
                            });
  }

  const boost::asio::ip::address& from() const { return from_; }

  // What the connection waits for.
  enum class Stage {
    kRequest,  // the rest of it
    kAnswer,   // from the handler
    kReader,   // its client, to read the answer
    kGoodbye,  // its client, to close after the answer
  };
  Stage stage() const { return stage_; }

  // Detaches it from the server.
  void Drop() {
    server_ = nullptr;
    awaited_.reset();
    reader_limit_.cancel();
    stream_.close();
  }

  const std::string& topic() const { return topic_; }
  // The request that opened the stream.
  const HttpRequest& asked() const { return asked_; }

  // Replaces text that was published before and has not been sent yet.
  void Publish(std::shared_ptr<const std::string> text) {
    next_ = std::move(text);
    if (has_begun_ && sending_ == nullptr) SendNext();
  }

 private:
  void OnRequest(beast::error_code error) {
    // Malformed HTTP is answered; a client that is silent or gone is not.
    static const auto& kNoHttp = http::make_error_code(http::error::bad_method).category();
    if (error && (error.category() != kNoHttp || error == http::error::end_of_stream ||
                  error == http::error::partial_message)) {
      return End();
    }
    stage_ = Stage::kReader;
    if (error) return Send({.status = 400});
    asked_ = ToRequest(request_.get());
    HttpAnswer answer = server_->handler_(asked_);
    if (answer.later && Reads()) return Await(answer.later);
    Send(std::move(answer));
  }

  bool Reads() const {
    const http::verb method = request_.get().method();
    return method == http::verb::get || method == http::verb::head;
  }

  void Await(const std::function<std::shared_ptr<void>(HttpAnswer::Reply)>& later) {
    stage_ = Stage::kAnswer;
    reader_limit_.expires_after(kPatience);
    reader_limit_.async_wait([self = shared_from_this()](beast::error_code error) {
      if (!error) self->Reply({.status = 504});
    });
    awaited_ = later([weak = weak_from_this()](HttpAnswer answer) {
      if (const auto self = weak.lock()) self->Reply(std::move(answer));
    });
  }

  void Reply(HttpAnswer answer) {
    if (server_ == nullptr || stage_ != Stage::kAnswer) return;
    stage_ = Stage::kReader;
    awaited_.reset();
    reader_limit_.cancel();
    stream_.expires_after(kPatience);
    Send(std::move(answer));
  }

  void Send(HttpAnswer answer) {
    const http::verb method = request_.get().method();
    is_stream_ = answer.is_stream && method == http::verb::get;
    topic_ = answer.topic;
    if (!Reads() && answer.status != 404 && answer.status != 400) {
      answer = {.status = 405, .headers = {{"Allow", "GET, HEAD"}}};
    }
    response_ = ToResponse(std::move(answer));
    // Content-Length stays that of GET.
    if (method == http::verb::head) response_.body().clear();
    // Joins now, so that text published while the answer is sent is not missed.
    if (is_stream_) JoinStreams();
    http::async_write(stream_, response_,
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        if (self->server_ == nullptr) return;
                        if (!self->is_stream_) return self->AwaitGoodbye();
                        if (error) return self->End();
                        self->BeginStream();
                      });
  }

  void JoinStreams() {
    if (server_->streams_.size() >= kMostStreams) {
      MakeRoom(server_->streams_, [](const Connection&) { return true; });
    }
    server_->streams_.splice(server_->streams_.end(), *among_, place_);
    among_ = &server_->streams_;
  }

  void BeginStream() {
    stream_.expires_never();
    has_begun_ = true;
    // It stays as long as its reader, and the answer may be megabytes.
    std::string().swap(response_.body());
    buffer_.clear();
    AwaitHangup();
    if (next_ != nullptr) SendNext();
  }

  // What the client still sends is thrown away; waits for it to close.
  void AwaitHangup() {
    stream_.async_read_some(buffer_.prepare(kHeaderBytes),
                            [self = shared_from_this()](beast::error_code error, std::size_t) {
                              if (self->server_ == nullptr) return;
                              if (error) return self->End();
                              self->AwaitHangup();
                            });
  }

  void SendNext() {
    sending_ = std::exchange(next_, nullptr);
    reader_limit_.expires_after(kReaderPatience);
    reader_limit_.async_wait([self = shared_from_this()](beast::error_code error) {
      if (!error && self->server_ != nullptr && self->sending_ != nullptr) self->End();
    });
    boost::asio::async_write(stream_, boost::asio::buffer(*sending_),
                             [self = shared_from_this()](beast::error_code error, std::size_t) {
                               self->sending_.reset();
                               self->reader_limit_.cancel();
                               if (self->server_ == nullptr) return;
                               if (error) return self->End();
                               if (self->next_ != nullptr) self->SendNext();
                             });
  }

  // Closing a socket with unread bytes would reset it, and the client would lose the answer.
  void AwaitGoodbye() {
    stage_ = Stage::kGoodbye;
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    buffer_.clear();
    AwaitHangup();
  }

  void End() {
    Drop();
    among_->erase(place_);
  }

  beast::tcp_stream stream_;
  const boost::asio::ip::address from_;
  // Null: dropped, or finished.
  HttpServer* server_;
  // The list it is in.
  Connections* among_ = nullptr;
  Connections::iterator place_;
  beast::flat_buffer buffer_{2 * kHeaderBytes};
  http::request_parser<http::empty_body> request_;
  http::response<http::string_body> response_;
  bool is_stream_ = false;
  // Its answer has been sent; published text may follow.
  bool has_begun_ = false;
  HttpRequest asked_;
  std::string topic_;
  Stage stage_ = Stage::kRequest;
  // Held while an answer is pending.
  std::shared_ptr<void> awaited_;
  // What is being sent to a stream, and what comes next.
  std::shared_ptr<const std::string> sending_;
  std::shared_ptr<const std::string> next_;
  boost::asio::steady_timer reader_limit_{stream_.get_executor()};
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Open(boost::asio::io_context& io,
                                                             const Endpoint& endpoint,
                                                             const std::string& what,
                                                             Handler handler) {
  auto sockets = ListenAt(io, endpoint);
  absl::Status status = sockets.status();
  std::unique_ptr<HttpServer> server(new HttpServer(io, std::move(handler)));
  if (sockets.ok()) {
    server->port_ = PortOf(*sockets);
    for (tcp::acceptor& socket : *sockets) {
      status.Update(server->acceptor_.Serve(socket.release()));
    }
  }
  if (status.ok()) return server;
  return absl::Status(status.code(), absl::StrCat("cannot serve ", what, ": ", status.message()));
}

HttpServer::HttpServer(boost::asio::io_context& io, Handler handler)
    : handler_(std::move(handler)),
      acceptor_(
          io,
          [this](tcp::socket socket, const boost::asio::ip::address& from) {
            Take(std::move(socket), from);
          },
          [] { return true; }) {}

HttpServer::~HttpServer() {
  acceptor_.Close();
  for (const auto& connection : connections_) connection->Drop();
  for (const auto& stream : streams_) stream->Drop();
}

void HttpServer::Publish(const std::string& topic, std::shared_ptr<const std::string> text) {
  for (const auto& stream : streams_) {
    if (stream->topic() == topic) stream->Publish(text);
  }
}

std::set<std::string> HttpServer::Topics() const {
  std::set<std::string> topics;
  for (const auto& stream : streams_) topics.insert(stream->topic());
  return topics;
}

void HttpServer::EndStreams(const MayGoOn& may_go_on) {
  streams_.remove_if([&](const auto& stream) {
    if (may_go_on(stream->asked(), stream->topic())) return false;
    stream->Drop();
    return true;
  });
}

// A host that keeps connecting displaces only itself.
bool HttpServer::MakeRoom(Connections& among,
                          const std::function<bool(const Connection&)>& may_go) {
  std::map<boost::asio::ip::address, std::size_t> counts;
  for (const auto& connection : among) {
    if (may_go(*connection)) ++counts[connection->from()];
  }
  if (counts.empty()) return false;
  const auto most = std::max_element(
      counts.begin(), counts.end(),
      [](const auto& one, const auto& other) { return one.second < other.second; });
  const auto oldest = std::find_if(among.begin(), among.end(), [&](const auto& connection) {
    return connection->from() == most->first && may_go(*connection);
  });
  (*oldest)->Drop();
  among.erase(oldest);
  return true;
}

bool HttpServer::MakeRoomForOne() {
  using Stage = Connection::Stage;
  // Behind a proxy all clients share one address, and a stranger can hold places for free: so
  // connections that have sent a whole request are dropped last.
  for (const Stage stage : {Stage::kGoodbye, Stage::kRequest, Stage::kReader}) {
    const auto is_there = [stage](const Connection& one) { return one.stage() == stage; };
    if (MakeRoom(connections_, is_there)) return true;
  }
  return false;
}

void HttpServer::Take(tcp::socket socket, const boost::asio::ip::address& from) {
  if (connections_.size() >= kConnections && !MakeRoomForOne()) return;
  const auto place = connections_.insert(
      connections_.end(), std::make_shared<Connection>(std::move(socket), from, *this));
  (*place)->Start(place);
}

}  // namespace muster::rendezvous
