#include "rendezvous/net/patient_acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/failure.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;

constexpr int kAcceptsPerTurn = 64;
// After the kernel had no file descriptor for a connection, when none of ours closes.
constexpr std::chrono::seconds kRetryAfter(1);

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
  retry_.cancel();
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
    if (!has_room_()) return;  // until Resume
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
    // Else the connection has failed before it was accepted: the next one.
  }
  AwaitConnection(listener);
}

void PatientAcceptor::WaitForFiles(int error) {
  if (!out_of_files_) {
    spdlog::warn("accept a connection: {}; it waits until another closes",
                 base::SystemCause(error));
  }
  out_of_files_ = true;
  retry_.expires_after(kRetryAfter);
  retry_.async_wait([this, alive = std::weak_ptr(listeners_.front())](
                        const boost::system::error_code& cancelled) {
    if (!cancelled && !alive.expired()) Resume();
  });
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
