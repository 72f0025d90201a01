#include "rendezvous/net/listening_socket.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include <boost/asio/ip/v6_only.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rendezvous/wire/knock.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

std::string Attempt(const Endpoint& endpoint) {
  return absl::StrCat("listen on ", ToString(endpoint), ": ");
}

absl::StatusOr<std::vector<tcp::endpoint>> Resolve(const Endpoint& endpoint) {
  // One socket for both families; ListenAt falls back where there is no IPv6.
  if (endpoint.host == "0.0.0.0" || endpoint.host == "::") {
    return std::vector<tcp::endpoint>{{tcp::v6(), endpoint.port}};
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(endpoint.host.c_str(), nullptr, &hints, &found);
  if (error != 0) return absl::InvalidArgumentError(Attempt(endpoint) + gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::vector<tcp::endpoint> endpoints;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    tcp::endpoint& made = endpoints.emplace_back();
    made.resize(each->ai_addrlen);
    std::copy_n(reinterpret_cast<const char*>(each->ai_addr), each->ai_addrlen,
                reinterpret_cast<char*>(made.data()));
    made.port(endpoint.port);
  }
  return endpoints;
}

// kHold: it waits, and while it does nobody else takes the port. Where SO_REUSEADDR is set on both,
// two sockets may have the same port as long as neither listens. Without it connections of a former
// process that are still in TIME_WAIT are in the way; then kWait has to do.
enum class Then { kListen, kWait, kHold };

error_code Open(const tcp::endpoint& endpoint, Then then, tcp::acceptor& socket) {
  error_code error;
  socket.open(endpoint.protocol(), error);
  if (!error) socket.set_option(tcp::acceptor::reuse_address(then != Then::kHold), error);
  if (!error && endpoint.address().is_v6()) {
    socket.set_option(boost::asio::ip::v6_only(!endpoint.address().is_unspecified()), error);
  }
  if (!error) socket.bind(endpoint, error);
  if (!error && then == Then::kListen) socket.listen(tcp::acceptor::max_listen_connections, error);
  return error;
}

// Whether something happens to the connection, "it can be written to" or "it has ended", in time.
bool Await(int fd, short events, std::chrono::steady_clock::time_point end) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  pollfd connection = {fd, events, 0};
  return poll(&connection, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) > 0;
}

// Asks the holder of the port to leave it; returns when that one has, or has ended the connection
// as every living rendezvous does. The listener of a process that is just being killed ends it,
// too.
void AskForRoom(const tcp::endpoint& endpoint) {
  constexpr auto kPatience = std::chrono::milliseconds(500);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const int fd =
      socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  // To "every address" connects as to this machine's own.
  const bool begun = connect(fd, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0 ||
                     errno == EINPROGRESS;
  if (begun && Await(fd, POLLOUT, end) &&
      send(fd, kMakeRoom.data(), kMakeRoom.size(), MSG_NOSIGNAL) > 0) {
    char ignored[256];
    while (Await(fd, POLLIN, end) && recv(fd, ignored, sizeof ignored, 0) > 0) {
    }
  }
  close(fd);
}

bool FamilyIsMissing(const error_code& error) {
  return error == boost::asio::error::address_family_not_supported ||
         error.value() == EADDRNOTAVAIL;
}

absl::StatusOr<std::vector<tcp::acceptor>> OpenAt(boost::asio::io_context& io,
                                                  const Endpoint& endpoint, Then then) {
  const auto resolved = Resolve(endpoint);
  if (!resolved.ok()) return resolved.status();
  std::vector<tcp::acceptor> sockets;
  std::uint16_t port = endpoint.port;
  error_code last;
  for (tcp::endpoint at : *resolved) {
    at.port(port);
    tcp::acceptor socket(io);
    error_code error = Open(at, then, socket);
    if (FamilyIsMissing(error) && at.address().is_unspecified()) {
      socket = tcp::acceptor(io);
      error = Open({tcp::v4(), port}, then, socket);
    }
    if (error == boost::asio::error::address_in_use) {
      AskForRoom(at);
      socket = tcp::acceptor(io);
      error = Open(at, then, socket);
    }
    if (error) {
      last = error;
      // A name may have an address of a family that this kernel lacks, or of another machine; one
      // that is taken is another matter.
      if (FamilyIsMissing(error)) continue;
      break;
    }
    port = socket.local_endpoint(error).port();
    sockets.push_back(std::move(socket));
  }
  if (!last || (FamilyIsMissing(last) && !sockets.empty())) return sockets;
  const std::string sentence = absl::StrCat(Attempt(endpoint), last.message());
  if (last == boost::asio::error::address_in_use) return absl::AlreadyExistsError(sentence);
  return absl::UnavailableError(sentence);
}

}  // namespace

absl::StatusOr<std::vector<tcp::acceptor>> ListenAt(boost::asio::io_context& io,
                                                    const Endpoint& endpoint) {
  return OpenAt(io, endpoint, Then::kListen);
}

absl::StatusOr<std::vector<tcp::acceptor>> BindAt(boost::asio::io_context& io,
                                                  const Endpoint& endpoint) {
  auto sockets = OpenAt(io, endpoint, Then::kHold);
  if (!absl::IsAlreadyExists(sockets.status())) return sockets;
  return OpenAt(io, endpoint, Then::kWait);
}

tcp::acceptor AcceptorOf(boost::asio::io_context& io, int fd) {
  sockaddr_storage local = {};
  socklen_t size = sizeof local;
  getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size);
  return tcp::acceptor(io, local.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), fd);
}

std::uint16_t PortOf(const std::vector<tcp::acceptor>& sockets) {
  error_code error;
  const tcp::endpoint local = sockets.front().local_endpoint(error);
  return error ? 0 : local.port();
}

}  // namespace muster::rendezvous
