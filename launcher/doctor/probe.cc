#include "launcher/doctor/probe.h"

#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/failure.h"
#include "launcher/machine/network.h"

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;

constexpr milliseconds kDialLimit(3000);
constexpr milliseconds kTransferTime(300);
constexpr std::size_t kTransferBytes = std::size_t{64} << 20;
// How long a transfer may make no progress before it counts as stalled.
constexpr milliseconds kStandstill(4000);
constexpr milliseconds kConversation(8000);
constexpr int kRoundTrips = 32;
constexpr std::size_t kMessageSize = 16;
constexpr char kPing = 'p';
constexpr char kTransfer = 't';
// Sizes at which networks differ: jumbo frames, Ethernet, tunnels, and IPv6's minimum MTU.
constexpr int kPacketSizes[] = {9000, 8900, 4000, 1500, 1450, 1400, 1280};
constexpr int kMaxPacket = 16000;
constexpr int kTries = 3;

using Message = std::array<char, kMessageSize>;

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

AddressList Numeric(const std::string& address, std::uint16_t port, int type) {
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = type;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    found = nullptr;
  }
  return {found, [](addrinfo* one) {
            if (one != nullptr) ::freeaddrinfo(one);
          }};
}

// The MTU of the interface of this machine with this address; 0 if unknown.
int MtuAt(const std::string& address) {
  const std::string name = InterfaceWith(address);
  if (name.empty() || name.size() >= IFNAMSIZ) return 0;
  const base::UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::memcpy(request.ifr_name, name.data(), name.size());
  return ::ioctl(fd.get(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

int HeaderSize(int family) {
  return (family == AF_INET6 ? 40 : 20) + 8;
}

bool Write(int fd, const char* bytes, std::size_t size, steady_clock::time_point deadline) {
  while (size > 0) {
    const ssize_t written = ::send(fd, bytes, size, MSG_NOSIGNAL);
    if (written > 0) {
      bytes += written;
      size -= static_cast<std::size_t>(written);
    } else if (errno != EAGAIN && errno != EINTR) {
      return false;
    } else if (!AwaitWritable(fd, deadline)) {
      errno = ETIMEDOUT;
      return false;
    }
  }
  return true;
}

bool Read(int fd, char* bytes, std::size_t size, steady_clock::time_point deadline) {
  while (size > 0) {
    if (!AwaitReadable(fd, deadline)) {
      errno = ETIMEDOUT;
      return false;
    }
    const ssize_t got = ::recv(fd, bytes, size, 0);
    if (got == 0) errno = ECONNRESET;
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (got > 0) {
      bytes += got;
      size -= static_cast<std::size_t>(got);
    }
  }
  return true;
}

void SendDatagrams(const std::string& address, std::uint16_t port, const std::string& key,
                   int mtu) {
  const AddressList peer = Numeric(address, port, SOCK_DGRAM);
  if (peer == nullptr) return;
  const base::UniqueFd fd(::socket(peer->ai_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // Sends the packet unfragmented or not at all, and ignores the kernel's cached path MTU.
  const int probe4 = IP_PMTUDISC_PROBE;
  const int probe6 = IPV6_PMTUDISC_PROBE;
  const int set =
      peer->ai_family == AF_INET6
          ? ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe6, sizeof probe6)
          : ::setsockopt(fd.get(), IPPROTO_IP, IP_MTU_DISCOVER, &probe4, sizeof probe4);
  if (set != 0) return;
  std::vector<int> sizes = {std::min(mtu, kMaxPacket)};
  std::copy_if(std::begin(kPacketSizes), std::end(kPacketSizes), std::back_inserter(sizes),
               [&](int size) { return size < mtu; });
  for (int tried = 0; tried < kTries; ++tried) {
    for (const int size : sizes) {
      std::string packet = key;
      packet.resize(static_cast<std::size_t>(
          std::max(size - HeaderSize(peer->ai_family), static_cast<int>(kProbeKeySize))));
      ::sendto(fd.get(), packet.data(), packet.size(), 0, peer->ai_addr, peer->ai_addrlen);
    }
  }
}

struct RoundTrip {
  double took_us = 0;
  double clock_ahead_s = 0;
};

// One message there and back; the answer has the other host's clock.
bool GoAndReturn(int fd, steady_clock::time_point deadline, RoundTrip& trip) {
  Message message = {kPing};
  const auto start = steady_clock::now();
  const auto wall_start = system_clock::now();
  if (!Write(fd, message.data(), message.size(), deadline)) return false;
  if (!Read(fd, message.data(), message.size(), deadline)) return false;
  const std::chrono::duration<double> took = steady_clock::now() - start;
  std::int64_t theirs = 0;
  std::memcpy(&theirs, message.data(), sizeof theirs);
  const double ours =
      std::chrono::duration<double>(wall_start.time_since_epoch()).count() + took.count() / 2;
  trip = {.took_us = took.count() * 1e6, .clock_ahead_s = static_cast<double>(theirs) / 1e9 - ours};
  return true;
}

bool MeasureRoundTrips(int fd, LinkMeasurement& link) {
  const auto deadline = steady_clock::now() + kConversation;
  std::vector<RoundTrip> trips;
  for (int i = 0; i < kRoundTrips; ++i) {
    RoundTrip trip;
    if (!GoAndReturn(fd, deadline, trip)) return false;
    trips.push_back(trip);
  }
  std::sort(trips.begin(), trips.end(),
            [](const RoundTrip& a, const RoundTrip& b) { return a.took_us < b.took_us; });
  link.latency_us = trips[trips.size() / 2].took_us;
  // The fastest round trip has the least queueing in either direction.
  link.clock_ahead_s = trips.front().clock_ahead_s;
  return true;
}

bool MeasureTransfer(int fd, LinkMeasurement& link) {
  Message message = {kTransfer};
  if (!Write(fd, message.data(), message.size(), steady_clock::now() + kStandstill)) return false;
  const std::string piece(std::size_t{256} << 10, '\0');
  const auto end = steady_clock::now() + kTransferTime;
  std::size_t sent = 0;
  while (steady_clock::now() < end && sent < kTransferBytes) {
    if (!Write(fd, piece.data(), piece.size(), steady_clock::now() + kStandstill)) return false;
    sent += piece.size();
  }
  ::shutdown(fd, SHUT_WR);
  if (!Read(fd, message.data(), message.size(), steady_clock::now() + kStandstill)) return false;
  std::int64_t bytes = 0;
  std::int64_t took_ns = 0;
  std::memcpy(&bytes, message.data(), sizeof bytes);
  std::memcpy(&took_ns, message.data() + sizeof bytes, sizeof took_ns);
  if (took_ns > 0)
    link.bytes_per_s = static_cast<double>(bytes) * 1e9 / static_cast<double>(took_ns);
  return true;
}

// Counts received bytes until the end of the stream, and sends back how many in what time.
void ReceiveTransfer(int fd) {
  std::vector<char> piece(std::size_t{256} << 10);
  const auto deadline = steady_clock::now() + kConversation;
  std::int64_t bytes = 0;
  const auto start = steady_clock::now();
  while (AwaitReadable(fd, deadline)) {
    const ssize_t got = ::recv(fd, piece.data(), piece.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) break;
    bytes += got;
    if (static_cast<std::size_t>(bytes) > 2 * kTransferBytes) return;
  }
  const std::int64_t took_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(steady_clock::now() - start).count();
  Message message = {};
  std::memcpy(message.data(), &bytes, sizeof bytes);
  std::memcpy(message.data() + sizeof bytes, &took_ns, sizeof took_ns);
  Write(fd, message.data(), message.size(), deadline);
}

void SetNoDelay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// False if the peer does not know the key.
bool Converse(int fd, const std::string& key) {
  SetNoDelay(fd);
  Message message = {};
  const auto deadline = steady_clock::now() + kConversation;
  if (!Read(fd, message.data(), message.size(), steady_clock::now() + milliseconds(1000))) {
    return false;
  }
  if (std::string(message.data(), message.size()) != key) return false;
  if (!Write(fd, message.data(), message.size(), deadline)) return true;
  while (Read(fd, message.data(), message.size(), deadline)) {
    if (message[0] == kTransfer) {
      ReceiveTransfer(fd);
      return true;
    }
    const std::int64_t now =
        std::chrono::duration_cast<std::chrono::nanoseconds>(system_clock::now().time_since_epoch())
            .count();
    std::memcpy(message.data(), &now, sizeof now);
    if (!Write(fd, message.data(), message.size(), deadline)) return true;
  }
  return true;
}

// Reads the packets that have arrived.
void CountDatagrams(int fd, const std::string& key, int header_size, Arrival& arrival) {
  std::array<char, kMaxPacket + 1> packet;
  while (true) {
    const ssize_t size = ::recv(fd, packet.data(), packet.size(), 0);
    if (size < 0) return;
    if (static_cast<std::size_t>(size) < key.size() ||
        std::memcmp(packet.data(), key.data(), key.size()) != 0) {
      continue;
    }
    arrival.largest_packet = std::max(arrival.largest_packet, static_cast<int>(size) + header_size);
  }
}

base::UniqueFd BindAt(const std::string& address, std::uint16_t port, int type) {
  const AddressList own = Numeric(address, port, type);
  if (own == nullptr) return {};
  base::UniqueFd fd(::socket(own->ai_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), own->ai_addr, own->ai_addrlen) != 0) return {};
  return fd;
}

std::uint16_t PortAt(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

absl::StatusOr<ProbePort> ProbePort::Open(const std::string& address, std::uint16_t port) {
  constexpr int kWaiting = 16;
  ProbePort probe;
  probe.address_ = address;
  for (const std::uint16_t wanted : {port, std::uint16_t{0}}) {
    probe.listener_ = BindAt(address, wanted, SOCK_STREAM);
    if (!probe.listener_.valid() || ::listen(probe.listener_.get(), kWaiting) != 0) continue;
    probe.port_ = PortAt(probe.listener_.get());
    probe.datagrams_ = BindAt(address, probe.port_, SOCK_DGRAM);
    if (probe.datagrams_.valid()) return probe;
  }
  return base::SystemFailure(absl::StatusCode::kUnavailable, "listen at", address);
}

Arrival ProbePort::Receive(const std::string& key, milliseconds limit) const {
  Arrival arrival{.mtu = MtuAt(address_)};
  const int header_size = HeaderSize(address_.find(':') != std::string::npos ? AF_INET6 : AF_INET);
  const auto deadline = steady_clock::now() + limit;
  while (AwaitReadable(listener_.get(), deadline)) {
    const base::UniqueFd peer(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (peer.valid() && Converse(peer.get(), key)) break;
  }
  // The packets were sent before the connection was made, so they are here.
  CountDatagrams(datagrams_.get(), key, header_size, arrival);
  return arrival;
}

LinkMeasurement Probe(const std::string& address, std::uint16_t port, const std::string& key) {
  LinkMeasurement link;
  if (Numeric(address, port, SOCK_DGRAM) == nullptr || key.size() != kProbeKeySize) {
    link.cause = "it is not the address of a host";
    return link;
  }
  const std::string own = LookAtEndpoint({address, port}).local_address;
  if (!own.empty()) {
    link.mtu = MtuAt(own);
    SendDatagrams(address, port, key, link.mtu == 0 ? 1500 : link.mtu);
  }
  const Dialled dialled = Dial(address, port, kDialLimit);
  link.outcome = dialled.outcome;
  link.cause = dialled.cause;
  if (dialled.outcome != DialOutcome::kConnected) return link;
  const int fd = dialled.socket.get();
  SetNoDelay(fd);
  Message answer = {};
  const auto deadline = steady_clock::now() + kStandstill;
  if (!Write(fd, key.data(), key.size(), deadline) ||
      !Read(fd, answer.data(), answer.size(), deadline) || !MeasureRoundTrips(fd, link)) {
    link.trouble = base::SystemCause();
    return link;
  }
  if (!MeasureTransfer(fd, link)) {
    link.stalls = errno == ETIMEDOUT;
    link.trouble = base::SystemCause();
  }
  return link;
}

}  // namespace muster::launcher
