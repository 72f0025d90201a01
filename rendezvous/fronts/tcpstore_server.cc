#include "rendezvous/fronts/tcpstore_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "base/failure.h"
#include "rendezvous/net/socket_owner.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;

constexpr std::size_t kReadBytes = 64 << 10;
constexpr int kAcceptsPerTurn = 64;
// After the kernel had no file descriptor for a connection, when none of ours closes.
constexpr std::chrono::seconds kRetryAfter(1);

// Limits that fit together: a single value must be able to come and to go.
TcpStoreOptions Consistent(TcpStoreOptions options) {
  const std::size_t largest = options.limits.key_bytes + 2 * options.limits.value_bytes + 64;
  options.request_bytes = std::max(options.request_bytes, largest);
  options.output_limit_bytes =
      std::max(options.output_limit_bytes, options.output_pause_bytes + largest);
  return options;
}

// The address family of a socket that listens, or what is wrong with it.
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
    return failed("the socket is not one of TCP");
  }
  return address.ss_family;
}

bool IsOutOfFiles(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

TcpStoreServer::TcpStoreServer(boost::asio::io_context& loop, const TcpStoreOptions& options)
    : options_(Consistent(options)),
      loop_(loop),
      shared_{.loop = loop,
              .options = options_,
              .decode_limits = {.key_bytes = options_.limits.key_bytes,
                                .value_bytes = options_.limits.value_bytes,
                                .keys_per_request = options_.keys_per_request,
                                .request_bytes = options_.request_bytes},
              .on_closed =
                  [this](TcpStoreSession& session) {
                    sessions_.erase(&session);
                    ResumeAccepting();
                  }},
      retry_(loop) {
  shared_.read_buffer.resize(kReadBytes);
  Reset();
}

TcpStoreServer::~TcpStoreServer() {
  Close();
}

absl::Status TcpStoreServer::Serve(int listening_fd) {
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

void TcpStoreServer::Adopt(tcp::socket connection) {
  if (sessions_.size() >= options_.connections) {
    ++refused_;
    return;
  }
  fcntl(connection.native_handle(), F_SETFD, FD_CLOEXEC);
  StartSession(std::move(connection));
}

void TcpStoreServer::AllowOnly(const std::optional<std::vector<std::string>>& addresses) {
  allowed_ = TcpStoreAllowList(addresses);
  std::vector<std::shared_ptr<TcpStoreSession>> unwanted;
  for (const auto& [key, session] : sessions_) {
    if (!allowed_.Allows(session->host())) unwanted.push_back(session);
  }
  for (const auto& session : unwanted) session->Close();
}

void TcpStoreServer::Reset() {
  CloseSessions();
  shared_.service = std::make_unique<TcpStoreService>(options_.limits, options_.output_limit_bytes);
  shared_.hint = DialectHint(options_.legacy_dialect);
}

void TcpStoreServer::Close() {
  listeners_.clear();
  retry_.cancel();
  CloseSessions();
}

void TcpStoreServer::CloseSessions() {
  while (!sessions_.empty()) {
    const std::shared_ptr<TcpStoreSession> session = sessions_.begin()->second;
    session->Close();
  }
}

void TcpStoreServer::AwaitConnection(const std::shared_ptr<Listener>& listener) {
  listener->awaits = true;
  listener->socket.async_wait(
      boost::asio::posix::stream_descriptor::wait_read,
      [this, weak = std::weak_ptr(listener)](const boost::system::error_code& error) {
        if (const auto alive = weak.lock(); alive != nullptr && !error) AcceptSome(alive);
      });
}

void TcpStoreServer::AcceptSome(const std::shared_ptr<Listener>& listener) {
  listener->awaits = false;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (sessions_.size() >= options_.connections) return;  // until one closes
    const int fd = accept4(listener->socket.native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) {
      out_of_files_ = false;
      Admit(fd, listener->family);
    } else if (errno == EAGAIN) {
      break;
    } else if (IsOutOfFiles(errno)) {
      return WaitForFiles(errno);
    }
    // Else the connection has failed before it was accepted: the next one.
  }
  AwaitConnection(listener);
}

void TcpStoreServer::WaitForFiles(int error) {
  if (!out_of_files_) {
    spdlog::warn("store: accept a connection: {}; it waits until another closes",
                 base::SystemCause(error));
  }
  out_of_files_ = true;
  retry_.expires_after(kRetryAfter);
  retry_.async_wait([this, alive = std::weak_ptr(listeners_.front())](
                        const boost::system::error_code& cancelled) {
    if (!cancelled && !alive.expired()) ResumeAccepting();
  });
}

void TcpStoreServer::ResumeAccepting() {
  for (const std::shared_ptr<Listener>& listener : listeners_) {
    if (!listener->awaits) AwaitConnection(listener);
  }
}

void TcpStoreServer::Admit(int fd, int family) {
  tcp::socket connection(loop_);
  boost::system::error_code error;
  connection.assign(family == AF_INET ? tcp::v4() : tcp::v6(), fd, error);
  if (error) {
    close(fd);
    return;
  }
  StartSession(std::move(connection));
}

bool TcpStoreServer::IsOfAnotherUser(tcp::socket& connection) {
  if (!options_.own_user_only) return false;
  uid_t user = 0;
  if (OwnerOfPeer(connection.native_handle(), &user) != PeerOwner::kOthers) {
    return false;
  }
  if (user != static_cast<uid_t>(-1) && !std::exchange(told_of_others_, true)) {
    spdlog::warn(
        "the workers' store has turned away a process of another user of this machine (user id "
        "{}); if your workers run as another user than their agent, use --worker-store=worker",
        user);
  }
  return true;
}

void TcpStoreServer::StartSession(tcp::socket connection) {
  if (IsOfAnotherUser(connection)) {
    ++refused_;
    return;
  }
  auto session = std::make_shared<TcpStoreSession>(std::move(connection), shared_);
  if (!allowed_.Allows(session->host())) {
    ++refused_;
    return;  // which closes it
  }
  session->Start();
  sessions_.emplace(session.get(), std::move(session));
}

}  // namespace muster::rendezvous
