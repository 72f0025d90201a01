// Blocks hosts that open one useless connection after another, before they cost anything.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/async/timer.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/quotas.h"

namespace muster::rendezvous {

// Finds the hosts that open one useless connection after another. A connection is useless if it
// ends before its client has proved anything.

struct FloodLimits {
  // Useless connections of one host.
  int in_a_second = static_cast<int>(limits::kVainConnectionsInASecond.most);
  int at_once = static_cast<int>(limits::kVainConnectionsAtOnce.most);
  // How long a host is blocked that opens more of them.
  Duration rest = std::chrono::seconds(limits::kBarredSeconds.most);
  std::size_t barred = limits::kBarredHosts.most;
};

// A host is blocked for a while when too many of its connections were useless; afterwards the next
// few block it again. A host that has proved useful is never blocked, whatever other users on it do
// to its agents' detriment.
//
// A host is an address in the form of HostLine. The caller provides the time.
class Floods {
 public:
  using Host = boost::asio::ip::address;

  explicit Floods(FloodLimits limits = {}) : limits_(limits) {}

  // A useless connection from that host. True: the host is blocked from now on, and was not before.
  bool Failed(const Host& host, TimePoint now);

  // The host has shown that it holds a secret, or is this one. The last 4096 such hosts are
  // remembered. True: it was blocked.
  bool Known(const Host& host);

  // Unblocks hosts whose time is over. True: there were some.
  bool Release(TimePoint now);

  // The blocked hosts, each with the end of its block.
  const std::map<Host, TimePoint>& barred() const { return barred_; }
  // When Release is due; nullopt: no host is blocked.
  std::optional<TimePoint> next_release() const;

 private:
  struct Count {
    TokenBucket pace;
    TimePoint forgotten_at;  // by then its burst allowance is full again
  };

  Count& CountOf(const Host& host, TimePoint now);

  const FloodLimits limits_;
  std::map<Host, Count> counts_;
  std::map<Host, TimePoint> barred_;
  std::set<Host> known_;
  std::deque<Host> known_in_order_;
};

// Accepting and closing a connection takes about 50 us, so a host that does nothing else takes a
// third of a processor with a few thousand connections per second. This has the kernel drop the
// packets with which such a host opens connections (Floods decides which host, DropSynsFrom does
// it). Connections between this machine's own addresses are not affected.
//
// Lives on the loop's thread.
class FloodGuard {
 public:
  using Address = boost::asio::ip::address;

  // Returns the listening sockets. Called whenever they are needed.
  using Sockets = std::function<std::vector<int>()>;
  // `name` says in the log what the hosts connect to.
  FloodGuard(boost::asio::io_context& io, const char* name, Sockets sockets,
             FloodLimits limits = {});
  FloodGuard(const FloodGuard&) = delete;
  FloodGuard& operator=(const FloodGuard&) = delete;

  // The sockets listen. Removes the filter of a former process, which persists if the keeper holds
  // the sockets.
  void Begin() { Apply(); }
  // A connection from `peer` was accepted.
  void Accepted(const boost::asio::ip::tcp::socket& connection, const Address& peer);
  // A connection from there was useless.
  void Failed(const Address& peer);
  // A client there has the secret.
  void Known(const Address& peer);

 private:
  // False: the kernel refused.
  bool Apply();
  void AwaitRelease();

  const char* const name_;
  const Sockets sockets_;
  Floods floods_;
  base::Timer release_;
  TimePoint told_{};
};

// Makes the kernel drop connection attempts from some hosts.

// From now on the kernel drops TCP SYN packets (RFC 9293, section 3.1) from these hosts to these
// listening sockets, before it creates a connection; their clients retry after 1, 3, 7 seconds, as
// for any lost packet. No hosts: all may connect. Existing connections, and those accepted later,
// are not affected. Needs no privilege: a classic BPF program on the socket (socket(7),
// SO_ATTACH_FILTER; Linux's Documentation/networking/filter.rst).
//
// `hosts` in the form of HostLine: for IPv6 only the first half of the address counts. False: the
// kernel refused, and errno says why.
bool DropSynsFrom(const std::vector<boost::asio::ip::address>& hosts,
                  const std::vector<int>& listening_fds);

}  // namespace muster::rendezvous
