#include "rendezvous/net/flood_guard.h"

#include <linux/filter.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include <spdlog/spdlog.h>

#include "rendezvous/net/peer.h"

namespace muster::rendezvous {
namespace {

// Most hosts that are counted, and most that are remembered as known.
constexpr std::size_t kMostHosts = 4096;

}  // namespace

bool Floods::Failed(const Host& host, TimePoint now) {
  if (known_.contains(host)) return false;
  // These were in the kernel's queue already.
  if (barred_.contains(host)) return false;
  Count& count = CountOf(host, now);
  const TimePoint next = count.pace.Next(now);
  count.forgotten_at =
      next + std::chrono::seconds(1) * limits_.at_once / std::max(limits_.in_a_second, 1);
  if (next <= now || barred_.size() >= limits_.barred) return false;
  barred_.emplace(host, now + limits_.rest);
  return true;
}

Floods::Count& Floods::CountOf(const Host& host, TimePoint now) {
  if (counts_.size() >= kMostHosts && !counts_.contains(host)) {
    std::erase_if(counts_, [now](const auto& count) { return count.second.forgotten_at <= now; });
    // With so many hosts at once, none of them is a flood by itself.
    if (counts_.size() >= kMostHosts) counts_.clear();
  }
  return counts_.try_emplace(host, Count{TokenBucket(limits_.in_a_second, limits_.at_once), now})
      .first->second;
}

bool Floods::Known(const Host& host) {
  if (!known_.insert(host).second) return false;
  known_in_order_.push_back(host);
  if (known_in_order_.size() > kMostHosts) {
    known_.erase(known_in_order_.front());
    known_in_order_.pop_front();
  }
  counts_.erase(host);
  return barred_.erase(host) > 0;
}

bool Floods::Release(TimePoint now) {
  return std::erase_if(barred_, [now](const auto& host) { return host.second <= now; }) > 0;
}

std::optional<TimePoint> Floods::next_release() const {
  if (barred_.empty()) return std::nullopt;
  return std::min_element(
             barred_.begin(), barred_.end(),
             [](const auto& one, const auto& other) { return one.second < other.second; })
      ->second;
}

namespace {

using std::chrono::steady_clock;

// So that a flood does not fill the log.
constexpr std::chrono::minutes kTellEvery(1);

}  // namespace

FloodGuard::FloodGuard(boost::asio::io_context& io, const char* name, Sockets sockets,
                       FloodLimits limits)
    : name_(name), sockets_(std::move(sockets)), floods_(limits), release_(io) {}

void FloodGuard::Accepted(const boost::asio::ip::tcp::socket& connection, const Address& peer) {
  boost::system::error_code error;
  const auto local = connection.local_endpoint(error);
  const Address host = HostAddress(peer);
  // Any pair of this machine's addresses counts, as 127.0.0.1 can connect to 127.0.0.2.
  if (!error && (host.is_loopback() || HostAddress(local.address()) == host)) Known(host);
}

void FloodGuard::Failed(const Address& peer) {
  const TimePoint now = steady_clock::now();
  const Address host = HostAddress(peer);
  if (!floods_.Failed(HostLine(host), now)) return;
  const bool kept_away = Apply();
  if (told_ != TimePoint{} && now - told_ < kTellEvery) return;
  told_ = now;
  spdlog::warn("{}: {} keeps opening connections that never make a call; {}", name_,
               host.to_string(),
               kept_away ? "its connections are now limited to a few a second"
                         : "blocking it in the kernel needs CAP_NET_ADMIN");
}

void FloodGuard::Known(const Address& peer) {
  if (floods_.Known(HostLine(HostAddress(peer)))) Apply();
}

bool FloodGuard::Apply() {
  std::vector<Address> hosts;
  for (const auto& [host, until] : floods_.barred()) hosts.push_back(host);
  AwaitRelease();
  return DropSynsFrom(hosts, sockets_());
}

void FloodGuard::AwaitRelease() {
  const std::optional<TimePoint> next = floods_.next_release();
  if (release_.waits() || !next) return;
  release_.At(*next, [this] {
    if (floods_.Release(steady_clock::now())) Apply();
    AwaitRelease();
  });
}

namespace {

using boost::asio::ip::address;
using Program = std::vector<sock_filter>;

constexpr std::uint32_t kAccept = 0xffffffff;
constexpr std::uint32_t kDrop = 0;

// Offset in the TCP header, where a program on a TCP socket starts counting.
constexpr std::uint32_t kFlagsAt = 13;
constexpr std::uint32_t kSyn = 0x02, kAck = 0x10;
// Offsets in the IP header.
constexpr auto kNetwork = static_cast<std::uint32_t>(SKF_NET_OFF);
constexpr std::uint32_t kVersionAt = kNetwork, kSourceV4At = kNetwork + 12;
constexpr std::uint32_t kSourceV6At = kNetwork + 8;

sock_filter Do(std::uint16_t code, std::uint32_t operand) {
  return sock_filter{code, 0, 0, operand};
}
sock_filter If(std::uint16_t code, std::uint32_t operand, std::uint8_t skip_if,
               std::uint8_t skip_else) {
  return sock_filter{static_cast<std::uint16_t>(BPF_JMP | BPF_K | code), skip_if, skip_else,
                     operand};
}

std::uint32_t Word(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | std::uint32_t{bytes[3]};
}

void DropV4(Program& program, const std::vector<address>& hosts) {
  program.push_back(Do(BPF_LD | BPF_W | BPF_ABS, kSourceV4At));
  for (const address& host : hosts) {
    if (!host.is_v4()) continue;
    program.push_back(If(BPF_JEQ, host.to_v4().to_uint(), 0, 1));
    program.push_back(Do(BPF_RET | BPF_K, kDrop));
  }
  program.push_back(Do(BPF_RET | BPF_K, kAccept));
}

void DropV6(Program& program, const std::vector<address>& hosts) {
  for (const address& host : hosts) {
    if (!host.is_v6()) continue;
    const auto bytes = host.to_v6().to_bytes();
    program.push_back(Do(BPF_LD | BPF_W | BPF_ABS, kSourceV6At));
    program.push_back(If(BPF_JEQ, Word(bytes.data()), 0, 3));
    program.push_back(Do(BPF_LD | BPF_W | BPF_ABS, kSourceV6At + 4));
    program.push_back(If(BPF_JEQ, Word(bytes.data() + 4), 0, 1));
    program.push_back(Do(BPF_RET | BPF_K, kDrop));
  }
  program.push_back(Do(BPF_RET | BPF_K, kAccept));
}

// Accepted connections inherit the program, so it must let all other packets through.
Program DropSyns(const std::vector<address>& hosts) {
  Program v4;
  DropV4(v4, hosts);
  Program program = {
      Do(BPF_LD | BPF_B | BPF_ABS, kFlagsAt),
      Do(BPF_ALU | BPF_AND | BPF_K, kSyn | kAck),
      If(BPF_JEQ, kSyn, 1, 0),
      Do(BPF_RET | BPF_K, kAccept),
      Do(BPF_LD | BPF_B | BPF_ABS, kVersionAt),
      Do(BPF_ALU | BPF_RSH | BPF_K, 4),
      If(BPF_JEQ, 4, 1, 0),
      Do(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(v4.size())),
  };
  program.insert(program.end(), v4.begin(), v4.end());
  DropV6(program, hosts);
  return program;
}

}  // namespace

bool DropSynsFrom(const std::vector<address>& hosts, const std::vector<int>& listening_fds) {
  if (hosts.empty()) {
    const int ignored = 0;
    return std::ranges::all_of(listening_fds, [&](int fd) {
      return ::setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof ignored) == 0 ||
             errno == ENOENT;  // there was none
    });
  }
  Program program = DropSyns(hosts);
  const sock_fprog given{.len = static_cast<unsigned short>(program.size()),
                         .filter = program.data()};
  return std::ranges::all_of(listening_fds, [&](int fd) {
    return ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &given, sizeof given) == 0;
  });
}

}  // namespace muster::rendezvous
