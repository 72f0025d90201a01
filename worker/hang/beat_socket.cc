#include "worker/hang/beat_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/failure.h"

namespace muster::worker {
namespace {

// Datagrams per turn of the loop.
constexpr int kBatch = 64;
// Datagrams read before a decision; more than any known queue holds.
constexpr int kDrain = 1024;

absl::Status Failed(const std::string& path, const std::string& cause) {
  return base::Failure(absl::StatusCode::kFailedPrecondition, "make the socket for beats", path,
                       cause);
}

// The sender's credentials, from the kernel.
std::optional<ucred> SenderOf(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender;
    std::memcpy(&sender, CMSG_DATA(part), sizeof sender);
    return sender;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BeatSocket>> BeatSocket::Open(boost::asio::io_context& io,
                                                             std::string path,
                                                             Callbacks callbacks) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Failed(path, "the path is too long for a socket");
  }
  path.copy(address.sun_path, path.size());
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  // bind() gives the file the socket's mode (man 7 unix), so it is never wider than this.
  if (!socket.valid() || ::fchmod(socket.get(), 0600) != 0 ||
      ::setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Failed(path, base::SystemCause());
  }
  return std::unique_ptr<BeatSocket>(
      new BeatSocket(io, std::move(path), std::move(socket), std::move(callbacks)));
}

BeatSocket::BeatSocket(boost::asio::io_context& io, std::string path, base::UniqueFd socket,
                       Callbacks callbacks)
    : path_(std::move(path)), callbacks_(std::move(callbacks)), socket_(io, socket.release()) {
  AwaitBeats();
}

BeatSocket::~BeatSocket() {
  ::unlink(path_.c_str());
}

void BeatSocket::AwaitBeats() {
  socket_.async_wait(
      boost::asio::posix::stream_descriptor::wait_read,
      lifetime_.Guard([this, watch = lifetime_.watch()](boost::system::error_code error) {
        if (error) return;
        for (int i = 0; i < kBatch && ReceiveOne(); ++i) {
        }
        if (!watch.over()) AwaitBeats();
      }));
}

void BeatSocket::Drain() {
  for (int i = 0; i < kDrain && ReceiveOne(); ++i) {
  }
}

bool BeatSocket::ReceiveOne() {
  char text[kMaxBeat];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  iovec piece = {text, sizeof text};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  // `control` has no room for passed descriptors, so the kernel closes them.
  const ssize_t count = ::recvmsg(socket_.native_handle(), &message, MSG_CMSG_CLOEXEC);
  if (count < 0) return errno == EINTR;
  const std::optional<ucred> sender = SenderOf(message);
  if (!sender.has_value() || sender->uid != ::geteuid()) {
    ++foreign_;
    return true;
  }
  const std::optional<Beat> beat =
      (message.msg_flags & MSG_TRUNC) != 0
          ? std::nullopt
          : ParseBeat(std::string_view(text, static_cast<std::size_t>(count)));
  const base::Lifetime::Watch watch = lifetime_.watch();
  if (!beat.has_value()) {
    OnMalformed(sender->pid);
    return !watch.over();
  }
  if (!beat->ignored.empty()) OnIgnored(beat->ignored, sender->pid);
  if (!watch.over() && callbacks_.on_beat) {
    // A copy, as the callback may destroy the socket.
    const auto on_beat = callbacks_.on_beat;
    on_beat(*beat, sender->pid);
  }
  return !watch.over();
}

void BeatSocket::OnMalformed(pid_t pid) {
  if (++malformed_ > 1 || !callbacks_.on_warning) return;
  const auto on_warning = callbacks_.on_warning;
  on_warning(absl::StrCat("process ", pid,
                          " sent something other than \"beat RANK [STEP] [NAME=NUMBER ...]\" to "
                          "the beat socket ",
                          path_, "; it and others like it are ignored"));
}

void BeatSocket::OnIgnored(const std::string& word, pid_t pid) {
  if (std::exchange(ignored_any_, true) || !callbacks_.on_warning) return;
  const auto on_warning = callbacks_.on_warning;
  on_warning(
      absl::StrCat("process ", pid, " sent a beat with \"", absl::CHexEscape(word),
                   "\", which is none of loss=NUMBER, samples_per_second=NUMBER and at most ",
                   kMaxPhases, " phases NAME=SECONDS; that part of it is ignored"));
}

}  // namespace muster::worker
