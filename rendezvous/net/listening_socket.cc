#include "rendezvous/net/listening_socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>
#include <boost/asio/ip/v6_only.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "base/failure.h"
#include "rendezvous/wire/liveness_probe.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

std::string Attempt(const Endpoint& endpoint) {
  return absl::StrCat("listen on ", ToString(endpoint), ": ");
}

absl::StatusOr<std::vector<tcp::endpoint>> Resolve(const Endpoint& endpoint) {
  // One socket for both families; ListenAt falls back if there is no IPv6.
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

// kHold: bind without listening, and keep other processes from the port. If both sides set
// SO_REUSEADDR, two sockets may share a port as long as neither listens. Without it, a former
// process' connections in TIME_WAIT block the bind; then kWait has to do.
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

// Waits until the connection can be written to, has ended, or time is up; false in the last case.
bool Await(int fd, short events, std::chrono::steady_clock::time_point end) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  pollfd connection = {fd, events, 0};
  return poll(&connection, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) > 0;
}

// Asks the port's holder to leave; returns once it has, or has closed the connection as every
// living rendezvous does. The kernel also closes it if the listening process is just being killed.
void AskForRoom(const tcp::endpoint& endpoint) {
  constexpr auto kPatience = std::chrono::milliseconds(500);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const int fd =
      socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  // Connecting to "every address" connects to this machine.
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
      // A name may have an address of a family that this kernel lacks, or of another machine; an
      // address that is in use is different.
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

constexpr int kAcceptsPerTurn = 64;
// Retry interval after the kernel ran out of file descriptors, if no connection of ours closes.
constexpr std::chrono::seconds kRetryAfter(1);

// The address family of a listening socket, or what is wrong with it.
absl::StatusOr<int> FamilyOfListener(int fd) {
  const auto failed = [fd](absl::string_view why) {
    return base::Failure(absl::StatusCode::kInvalidArgument, "serve the store on file descriptor",
                         absl::StrCat(fd), why);
  };
  int listens = 0;
  socklen_t size = sizeof listens;
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0) {
    return failed(base::SystemCause());
  }
  if (listens == 0) return failed("the socket does not listen");
  sockaddr_storage address{};
  size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return failed(base::SystemCause());
  }
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) {
    return failed("the socket is not a TCP socket");
  }
  return address.ss_family;
}

bool IsOutOfFiles(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
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

PatientAcceptor::PatientAcceptor(boost::asio::io_context& loop, Take take,
                                 std::function<bool()> has_room)
    : loop_(loop), take_(std::move(take)), has_room_(std::move(has_room)), retry_(loop) {}

absl::Status PatientAcceptor::Serve(int listening_fd) {
  const absl::StatusOr<int> family = FamilyOfListener(listening_fd);
  if (!family.ok()) {
    close(listening_fd);
    return family.status();
  }
  fcntl(listening_fd, F_SETFL, fcntl(listening_fd, F_GETFL) | O_NONBLOCK);
  listeners_.push_back(std::make_shared<Listener>(Listener{
      .socket = boost::asio::posix::stream_descriptor(loop_, listening_fd), .family = *family}));
  AwaitConnection(listeners_.back());
  return absl::OkStatus();
}

std::vector<int> PatientAcceptor::listening_fds() const {
  std::vector<int> fds;
  for (const auto& listener : listeners_) fds.push_back(listener->socket.native_handle());
  return fds;
}

void PatientAcceptor::Close() {
  listeners_.clear();
  retry_.Cancel();
}

void PatientAcceptor::AwaitConnection(const std::shared_ptr<Listener>& listener) {
  listener->awaits = true;
  listener->socket.async_wait(
      boost::asio::posix::stream_descriptor::wait_read,
      [this, weak = std::weak_ptr(listener)](const boost::system::error_code& error) {
        if (const auto alive = weak.lock(); alive != nullptr && !error) AcceptSome(alive);
      });
}

void PatientAcceptor::AcceptSome(const std::shared_ptr<Listener>& listener) {
  listener->awaits = false;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (!has_room_()) return;  // until Resume is called
    tcp::endpoint peer(listener->family == AF_INET ? tcp::v4() : tcp::v6(), 0);
    socklen_t size = peer.capacity();
    const int fd = accept4(listener->socket.native_handle(), peer.data(), &size, SOCK_CLOEXEC);
    if (fd >= 0) {
      out_of_files_ = false;
      Admit(fd, listener->family, peer.address());
    } else if (errno == EAGAIN) {
      break;
    } else if (IsOutOfFiles(errno)) {
      return WaitForFiles(errno);
    }
    // Otherwise the connection failed before it was accepted: try the next.
  }
  AwaitConnection(listener);
}

void PatientAcceptor::WaitForFiles(int error) {
  if (!out_of_files_) {
    spdlog::warn("accept a connection: {}; it waits until another closes",
                 base::SystemCause(error));
  }
  out_of_files_ = true;
  retry_.After(kRetryAfter, [this] { Resume(); });
}

void PatientAcceptor::Resume() {
  for (const std::shared_ptr<Listener>& listener : listeners_) {
    if (!listener->awaits) AwaitConnection(listener);
  }
}

void PatientAcceptor::Admit(int fd, int family, const boost::asio::ip::address& peer) {
  tcp::socket connection(loop_);
  boost::system::error_code error;
  connection.assign(family == AF_INET ? tcp::v4() : tcp::v6(), fd, error);
  if (error) {
    close(fd);
    return;
  }
  take_(std::move(connection), peer);
}

}  // namespace muster::rendezvous
