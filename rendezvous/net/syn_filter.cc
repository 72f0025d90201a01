#include "rendezvous/net/syn_filter.h"

#include <linux/filter.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace muster::rendezvous {
namespace {

using boost::asio::ip::address;
using Program = std::vector<sock_filter>;

constexpr std::uint32_t kAccept = 0xffffffff;
constexpr std::uint32_t kDrop = 0;

// Of the TCP header, at which a program at a TCP socket begins to count.
constexpr std::uint32_t kFlagsAt = 13;
constexpr std::uint32_t kSyn = 0x02, kAck = 0x10;
// Of the IP header.
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

// Accepted connections inherit the program, so it must let through whatever else comes.
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
