#include "rendezvous/net/shared_port.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include <spdlog/spdlog.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rendezvous/wire/first_byte.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::address;
using boost::asio::ip::tcp;
using boost::system::error_code;

// Makes the kernel probe whether the peer's host is there, and end the connection if it is not.
void KeepAlive(int fd, std::chrono::seconds silence) {
  constexpr int kAskEverySeconds = 5;
  constexpr int kQuestions = 3;
  const int silent_seconds =
      std::max(static_cast<int>(silence.count()) - kAskEverySeconds * kQuestions, 1);
  // Unacknowledged data delays the probes, so it gets the same limit.
  const int limit_ms = (silent_seconds + kAskEverySeconds * kQuestions) * 1000;
  const auto set = [fd](int option, int value) {
    ::setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value));
  };
  set(TCP_KEEPIDLE, silent_seconds);
  set(TCP_KEEPINTVL, kAskEverySeconds);
  set(TCP_KEEPCNT, kQuestions);
  set(TCP_USER_TIMEOUT, limit_ms);
}

// Whether the first TLS record, which starts with `beginning`, is still incomplete. Until it is
// complete the socket does not count as readable.
bool AwaitsRecord(int fd, std::string_view beginning) {
  const std::size_t size = TlsRecordBytes(beginning).value_or(kTlsHeaderBytes);
  int there = 0;
  pollfd look{.fd = fd, .events = POLLRDHUP, .revents = 0};
  const bool comes = ::ioctl(fd, FIONREAD, &there) == 0 && static_cast<std::size_t>(there) < size &&
                     ::poll(&look, 1, 0) == 0;
  const int awaited = comes ? static_cast<int>(size) : 1;
  ::setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &awaited, sizeof awaited);
  return comes;
}

// How often to look for calls that gRPC refuses by itself; with many connections less often, at 1
// us each, and then only at some of them. A connection is checked if it has received this many
// bytes since the last time: some hundred calls.
constexpr std::chrono::milliseconds kLookEvery(250);
constexpr std::chrono::microseconds kLookCosts(200);  // half a per cent of the time
constexpr std::size_t kLookedAtOnce = 500;
constexpr std::uint64_t kBusyBytes = 8 << 10;

}  // namespace

SharedPort::SharedPort(boost::asio::io_context& io, std::vector<tcp::acceptor> sockets,
                       Taker take_grpc, Taker take_death_notice, SharedPortOptions options)
    : options_(options),
      take_grpc_(std::move(take_grpc)),
      take_death_notice_(std::move(take_death_notice)),
      flood_guard_(io, "rendezvous",
                   [this] {
                     std::vector<int> listening;
                     for (Door& door : doors_) listening.push_back(door.acceptor.native_handle());
                     return listening;
                   }),
      look_(io),
      handshakes_(
          io, [this](Socket connection) { GiveToGrpc(std::move(connection)); },
          [this](const address& host) {
            flood_guard_.Failed(host);
            if (options_.on_failed) options_.on_failed(host.to_string());
          }),
      overdue_(io),
      flood_end_(io) {
  // Counting starts with this call.
  if (options_.take_calls) options_.take_calls();
  for (tcp::acceptor& socket : sockets) {
    doors_.push_back({std::move(socket), std::make_unique<base::Timer>(io)});
    Accept(doors_.back());
  }
  flood_guard_.Begin();
}

SharedPort::~SharedPort() = default;

SharedPortStats SharedPort::stats() const {
  SharedPortStats stats = stats_;
  stats.slow = handshakes_.slow();
  return stats;
}

void SharedPort::OnStoreConnection(Taker take_store) {
  take_store_ = std::move(take_store);
  AwaitOldest();
}

void SharedPort::Called(const Peer& peer) {
  if (!handshakes_.Called(peer)) return;
  if (const auto host = ParseHostAddress(peer.address)) flood_guard_.Known(*host);
}

void SharedPort::Accept(Door& door) {
  door.acceptor.async_accept(
      door.peer, lifetime_.Guard([this, &door](const error_code& error, Socket connection) {
        if (error == boost::asio::error::operation_aborted) return;
        if (error == boost::asio::error::no_descriptors || error.value() == ENFILE ||
            error.value() == ENOMEM || error.value() == ENOBUFS) {
          PauseAccepting(door);
          return;
        }
        if (!error) Admit(std::move(connection), door.peer.address());
        Accept(door);
      }));
}

// Something other than connections has used up the descriptors of this process or machine. The
// connection stays in the kernel's queue, and accept() would fail again at once, in a busy loop.
void SharedPort::PauseAccepting(Door& door) {
  if (!std::exchange(told_of_pause_, true)) {
    spdlog::warn(
        "no file descriptor is left for a new connection; raise `ulimit -n` of this process");
  }
  door.pause->After(std::chrono::milliseconds(200), [this, &door] { Accept(door); });
}

void SharedPort::Admit(Socket connection, const address& host) {
  ++stats_.accepted;
  flood_guard_.Accepted(connection, host);
  const int fd_cap = FdCap();
  if (connection.native_handle() >= fd_cap) {
    ++stats_.refused_over_cap;
    return TurnAway(std::move(connection), host);
  }
  error_code ignored;
  connection.set_option(tcp::no_delay(true), ignored);
  connection.set_option(boost::asio::socket_base::keep_alive(true), ignored);
  const auto silent =
      silent_.emplace_hint(silent_.end(), next_id_++,
                           Silent{std::move(connection), host, std::chrono::steady_clock::now()});
  if (HandOn(silent)) return;
  AwaitFirstByte(silent);
  DropSurplus(fd_cap);
  AwaitOldest();
}

int SharedPort::FdCap() const {
  if (options_.fd_cap.has_value()) return *options_.fd_cap;
  // Read each time, as it may be changed from outside (prlimit).
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t reserve = std::min<rlim_t>(options_.reserve, limit.rlim_cur / 2);
  return static_cast<int>(std::min<rlim_t>(limit.rlim_cur - reserve, INT_MAX));
}

void SharedPort::AwaitFirstByte(SilentMap::iterator silent) {
  silent->second.connection.async_wait(
      Socket::wait_read, lifetime_.Guard([this, id = silent->first](const error_code&) {
        // It may have been handed on or dropped meanwhile.
        const auto found = silent_.find(id);
        if (found != silent_.end() && !HandOn(found)) AwaitFirstByte(found);
      }));
}

bool SharedPort::HandOn(SilentMap::iterator silent) {
  char beginning[kTlsHeaderBytes] = {};
  const int fd = silent->second.connection.native_handle();
  const ssize_t count = ::recv(fd, beginning, sizeof beginning, MSG_PEEK | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  const char first = beginning[0];
  if (count > 0 && options_.secure && first == kFirstOfTls &&
      AwaitsRecord(fd, {beginning, static_cast<std::size_t>(count)})) {
    return false;
  }
  Socket connection = std::move(silent->second.connection);
  const address host = silent->second.host;
  silent_.erase(silent);
  if (count > 0) {
    HandOn(std::move(connection), first, host);
  } else {
    flood_guard_.Failed(host);  // the peer has gone
  }
  return true;
}

void SharedPort::HandOn(Socket connection, char first, const address& host) {
  // The new owner must not get the pending wait for the first byte.
  error_code ignored;
  connection.cancel(ignored);
  // A connection that spoke at once was never waited for, so this is not set; gRPC relies on it,
  // and its thread would block in recv(), for all connections.
  connection.native_non_blocking(true, ignored);
  const Protocol protocol = ProtocolBy(first, options_.secure, take_store_ != nullptr);
  if (protocol != Protocol::kGrpc && protocol != Protocol::kStore) flood_guard_.Failed(host);
  switch (protocol) {
    case Protocol::kGrpc:
      return HandToGrpc(std::move(connection), host);
    case Protocol::kWrongDoor:
      ++stats_.wrong_door;
      return Answer(std::move(connection), options_.secure ? kTokenIsAskedFor : kNoTlsHere);
    case Protocol::kDeathNotice:
      return take_death_notice_(std::move(connection));
    case Protocol::kStore:
      return take_store_(std::move(connection));
    case Protocol::kKnock:
      ++stats_.knocks;
      return Close(connection);
    case Protocol::kStranger:
      ++stats_.garbage;
      return Close(connection);
  }
}

void SharedPort::HandToGrpc(Socket connection, const address& host) {
  const std::size_t share = GrpcShare();
  const std::size_t dropped =
      handshakes_.Add(std::move(connection),
                      {.at_once = share / 2, .waiting = share - std::min(share, silent_.size())});
  stats_.timed_out += dropped;
  if (dropped > 0) {
    flood_guard_.Failed(host);
    TellOfFlood(host);
  }
}

void SharedPort::GiveToGrpc(Socket connection) {
  error_code error;
  const tcp::endpoint peer = connection.remote_endpoint(error);
  if (error) return;
  KeepAlive(connection.native_handle(), options_.host_silence);
  // Waiting calls may use up the whole share; a newcomer must still be able to make a call.
  const std::size_t share = GrpcShare();
  const std::size_t most =
      std::clamp<std::size_t>(share - std::min(share, grpc_.waiting() + handshakes_.under_way()), 1,
                              limits::kIdleConnections.most);
  const std::size_t dropped = grpc_.Add(connection.native_handle(), peer, most);
  stats_.idle += dropped;
  if (dropped > 0) TellOfFlood(peer.address());
  take_grpc_(std::move(connection));
  AwaitLook();
}

void SharedPort::AwaitLook() {
  if (look_.waits() || !options_.take_calls || grpc_.size() == 0) return;
  look_.After(grpc_.size() > kLookedAtOnce ? kLookCosts * kLookedAtOnce
                                           : std::max<std::chrono::steady_clock::duration>(
                                                 kLookEvery, kLookCosts * grpc_.size()),
              [this] {
                LookForHiddenCalls();
                AwaitLook();
              });
}

void SharedPort::LookForHiddenCalls() {
  for (const auto& [peer, calls] : options_.take_calls()) {
    if (const auto endpoint = HostEndpoint(ParsePeer(peer))) grpc_.Heard(*endpoint, calls);
  }
  for (const auto& [peer, calls] : grpc_.TakeBusy(kBusyBytes, kLookedAtOnce)) {
    const std::uint64_t begun = stream_counts_.Begun(peer).value_or(0);
    if (begun <= calls + options_.calls_of_connection + limits::kHiddenCalls.most) continue;
    const std::string address = peer.address().to_string();
    grpc_.Drop({address, peer.port()});
    if (options_.on_hidden_calls) options_.on_hidden_calls(address, begun - calls);
  }
}

void SharedPort::Answer(Socket connection, std::string_view words) {
  const int fd = connection.native_handle();
  ::send(fd, words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  // Closing with unread bytes would send a reset, which may overtake the answer. A peer that keeps
  // sending is reset.
  constexpr std::size_t kMostUnread = 1 << 20;
  ::recv(fd, nullptr, kMostUnread, MSG_TRUNC | MSG_DONTWAIT);
  error_code ignored;
  connection.close(ignored);
}

absl::StatusOr<std::shared_ptr<void>> SharedPort::Wait(const Peer& peer) {
  const std::size_t most = GrpcShare();
  auto held = grpc_.Wait(peer, most);
  if (held) return *std::move(held);
  return absl::ResourceExhaustedError(
      absl::StrCat("calls wait over ", most,
                   " connections already, and the daemon can spare no more file "
                   "descriptors; raise `ulimit -n` where it runs"));
}

void SharedPort::DropSurplus(int fd_cap) {
  const std::size_t limit = static_cast<std::size_t>(fd_cap) / (take_store_ ? 2 : 4);
  while (silent_.size() + handshakes_.waiting() > limit && !silent_.empty()) {
    const auto oldest = silent_.begin();
    // It may have spoken just now.
    if (HandOn(oldest)) continue;
    ++stats_.timed_out;
    Silent dropped = std::move(oldest->second);
    silent_.erase(oldest);
    TurnAway(std::move(dropped.connection), dropped.host);
  }
}

void SharedPort::AwaitOldest() {
  if (overdue_.waits() || silent_.empty() || take_store_) return;
  overdue_.At(silent_.begin()->second.since + options_.handshake_timeout, [this] {
    if (!take_store_) DropOverdue();
    AwaitOldest();
  });
}

void SharedPort::DropOverdue() {
  const auto since = std::chrono::steady_clock::now() - options_.handshake_timeout;
  while (!silent_.empty() && silent_.begin()->second.since <= since) {
    const auto oldest = silent_.begin();
    if (HandOn(oldest)) continue;
    ++stats_.timed_out;
    flood_guard_.Failed(oldest->second.host);
    Close(oldest->second.connection);
    silent_.erase(oldest);
  }
}

void SharedPort::TurnAway(Socket connection, const address& host) {
  flood_guard_.Failed(host);
  TellOfFlood(host);
  Close(connection);
}

void SharedPort::TellOfFlood(const address& newcomer) {
  if (flood_++ > 0) return;
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  spdlog::warn(
      "too many connections for {} file descriptors: refusing some, the first from {}; unless "
      "someone is flooding this port, raise `ulimit -n` of this process",
      limit.rlim_cur, HostAddress(newcomer).to_string());
  AwaitEndOfFlood();
}

// With a reset: an orderly close would leave a kernel connection in TIME_WAIT for each rejected
// one. But not if it may be the silent connection of an old store client, which a reset would kill.
void SharedPort::Close(Socket& connection) {
  error_code ignored;
  connection.set_option(Socket::linger(!take_store_, 0), ignored);
  connection.close(ignored);
}

// Compares counts: resetting a timer for each connection would cost more than the connection.
void SharedPort::AwaitEndOfFlood() {
  flood_end_.After(options_.flood_pause, [this, before = flood_] {
    if (flood_ != before) return AwaitEndOfFlood();
    spdlog::warn("{} connections were refused in total, none recently", std::exchange(flood_, 0));
  });
}

}  // namespace muster::rendezvous
