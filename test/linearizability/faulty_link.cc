#include "test/linearizability/faulty_link.h"

#include <fcntl.h>

#include <array>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

namespace muster::linearizability {
namespace {

using boost::asio::ip::tcp;
using Error = boost::system::error_code;

tcp::endpoint Loopback(std::uint16_t port) {
  return {boost::asio::ip::address_v4::loopback(), port};
}

// Asio's sockets are inherited, and a daemon that is started would hold connections open that have
// been cut here: their clients would never hear of it.
template <typename Socket>
void KeepFromChildren(Socket& socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

}  // namespace

// One connection of the client and one to the daemon; both are closed together. Its handlers keep
// it for as long as they wait.
class FaultyLink::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket client, const Flows& flows)
      : client_(std::move(client)),
        daemon_(client_.get_executor()),
        up_{client_, daemon_, flows.to_daemon},
        down_{daemon_, client_, flows.to_client} {
    daemon_.open(tcp::v4());
    KeepFromChildren(client_);
    KeepFromChildren(daemon_);
  }

  void Begin(std::uint16_t daemon_port) {
    daemon_.async_connect(Loopback(daemon_port), [self = shared_from_this()](const Error& error) {
      if (error) return self->Cut();
      self->Read(self->up_);
      self->Read(self->down_);
    });
  }

  bool is_open() const { return client_.is_open(); }

  void SetFlows(const Flows& flows) {
    Change(up_, flows.to_daemon);
    Change(down_, flows.to_client);
  }

  void Cut() {
    Error ignored;
    client_.close(ignored);
    daemon_.close(ignored);
  }

 private:
  // One direction.
  struct Pipe {
    tcp::socket& from;
    tcp::socket& to;
    Flow flow;
    bool lossy = false;    // bytes are missing: what comes later makes no sense
    std::size_t held = 0;  // bytes in `buffer` that wait for the flow to change
    std::array<char, 16384> buffer{};
  };

  void Change(Pipe& pipe, Flow flow) {
    if (pipe.flow == flow) return;
    pipe.flow = flow;
    if (pipe.lossy) return Cut();
    if (pipe.held > 0) Pass(pipe, std::exchange(pipe.held, 0));
  }

  void Read(Pipe& pipe) {
    pipe.from.async_read_some(
        boost::asio::buffer(pipe.buffer),
        [self = shared_from_this(), &pipe](const Error& error, std::size_t size) {
          if (error) return self->Cut();
          self->Pass(pipe, size);
        });
  }

  void Pass(Pipe& pipe, std::size_t size) {
    if (pipe.flow == Flow::kHold) {
      pipe.held = size;
      return;
    }
    if (pipe.flow == Flow::kDrop) {
      pipe.lossy = true;
      return Read(pipe);
    }
    boost::asio::async_write(pipe.to, boost::asio::buffer(pipe.buffer.data(), size),
                             [self = shared_from_this(), &pipe](const Error& error, std::size_t) {
                               if (error) return self->Cut();
                               self->Read(pipe);
                             });
  }

  tcp::socket client_;
  tcp::socket daemon_;
  Pipe up_;
  Pipe down_;
};

FaultyLink::FaultyLink(boost::asio::io_context& loop, std::uint16_t daemon_port)
    : loop_(loop), daemon_port_(daemon_port), acceptor_(loop, Loopback(0)) {
  KeepFromChildren(acceptor_);
  Accept();
}

FaultyLink::~FaultyLink() {
  for (const auto& connection : connections_) connection->Cut();
}

void FaultyLink::SetFlows(const Flows& flows) {
  flows_ = flows;
  std::erase_if(connections_, [](const auto& connection) { return !connection->is_open(); });
  for (const auto& connection : connections_) connection->SetFlows(flows);
}

void FaultyLink::Accept() {
  acceptor_.async_accept([this](const Error& error, tcp::socket socket) {
    // The acceptor is closed, and the link may be gone.
    if (error) return;
    const auto connection = std::make_shared<Connection>(std::move(socket), flows_);
    connections_.push_back(connection);
    connection->Begin(daemon_port_);
    Accept();
  });
}

}  // namespace muster::linearizability
