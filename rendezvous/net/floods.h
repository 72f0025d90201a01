// Which hosts open one connection after the other that comes to nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include <boost/asio/ip/address.hpp>

#include "rendezvous/core/limits.h"
#include "rendezvous/core/pace.h"

namespace muster::rendezvous {

struct FloodLimits {
  // Connections of one host that come to nothing.
  int in_a_second = static_cast<int>(limits::kVainConnectionsInASecond.most);
  int at_once = static_cast<int>(limits::kVainConnectionsAtOnce.most);
  // How long a host is barred that opens more of them.
  Duration rest = std::chrono::seconds(limits::kBarredSeconds.most);
  std::size_t barred = limits::kBarredHosts.most;
};

// A host is barred for a while when too many of its connections have come to nothing; afterwards
// the next few bar it again. A host that is known to be of use is never barred, whoever else is on
// it: its agents have nothing to fear from its other users.
//
// A host is what HostLine makes of an address. Time is the caller's.
class Floods {
 public:
  using Host = boost::asio::ip::address;

  explicit Floods(FloodLimits limits = {}) : limits_(limits) {}

  // A connection from there has come to nothing. True: the host is barred from now on, which it was
  // not before.
  bool Failed(const Host& host, TimePoint now);

  // The host has shown that it holds a secret, or is this one. Of these, 4096 are remembered. True:
  // it was barred.
  bool Known(const Host& host);

  // Lets those in again whose time is over. True: there were some.
  bool Release(TimePoint now);

  // Each until when.
  const std::map<Host, TimePoint>& barred() const { return barred_; }
  // When Release is due; nullopt: nobody is barred.
  std::optional<TimePoint> next_release() const;

 private:
  struct Count {
    Pace pace;
    TimePoint forgotten_at;  // by then it may have as many at once as ever
  };

  Count& CountOf(const Host& host, TimePoint now);

  const FloodLimits limits_;
  std::map<Host, Count> counts_;
  std::map<Host, TimePoint> barred_;
  std::set<Host> known_;
  std::deque<Host> known_in_order_;
};

}  // namespace muster::rendezvous
