// Limits how many connections may be in their handshake at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/async/timer.h"
#include "base/lifetime.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/quotas.h"
#include "rendezvous/net/peer.h"

namespace muster::rendezvous {

struct HandshakeLimits {
  std::size_t at_once = limits::kHandshakes.most;
  std::size_t of_address = limits::kHandshakesOfAddress.most;
  // How long a handshake may take while others wait for it; if none does, gRPC's own limit applies.
  std::chrono::milliseconds patience = std::chrono::seconds(limits::kHandshakeSeconds.most);
  // Failed handshakes per address.
  int failures_in_a_second = static_cast<int>(limits::kFailedHandshakesInASecond.most);
  int failures_at_once = static_cast<int>(limits::kFailedHandshakesAtOnce.most);
};

// From its first byte until its first call a connection is unidentified, and costs gRPC 70 KB of
// memory and, with TLS, milliseconds of time. The number in that state is limited, in total and per
// address. The others wait, and cost only their descriptors. Addresses take turns; within an
// address the newest goes first, as the one most likely still wanted: in a flood of silent
// connections from an agent's address, the agent gets its turn.
//
// An address whose handshakes fail has to pause between them, so that the cost to others stays
// small however much it sends. Its good connections pause as well: an agent at an attacker's
// address has to put up with that. Established connections are not affected.
//
// An address is an IPv4 address, or the first half of an IPv6 address, which is what one host or
// site is given.
//
// Lives on the loop's thread.
class Handshakes {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  // Starts the handshake. Must not call back.
  using Begin = std::function<void(Socket)>;
  // A connection from that address has ended before its first call, or was closed here. May be
  // empty.
  using Failed = std::function<void(const boost::asio::ip::address& host)>;

  Handshakes(boost::asio::io_context& io, Begin begin, Failed failed = {},
             HandshakeLimits limits = {});
  Handshakes(const Handshakes&) = delete;
  Handshakes& operator=(const Handshakes&) = delete;

  // What file descriptors currently allow. A handshake takes two.
  struct Room {
    std::size_t at_once;
    std::size_t waiting;
  };

  // A connection whose first byte has arrived. If too many would wait, the one that has waited
  // longest is closed, from the newcomer's own address if possible. Returns how many.
  std::size_t Add(Socket connection, const Room& room);

  // The connection from `peer` has made a call. True: it was its first.
  bool Called(const Peer& peer);

  std::size_t under_way() const { return under_way_.size(); }
  std::size_t waiting() const { return waiting_.size(); }
  // Closed because they took too long while others waited.
  std::uint64_t slow() const { return slow_; }

 private:
  using Address = boost::asio::ip::address;
  using Endpoint = boost::asio::ip::tcp::endpoint;
  // In order of arrival, or of start.
  using Turn = std::uint64_t;

  struct UnderWay {
    // A second descriptor of the connection; it shows when gRPC has shut the connection down.
    Socket watch;
    Endpoint peer;
    Address line;
    TimePoint since;
  };
  struct Waiting {
    Socket connection;
    Endpoint peer;
    Address line;
  };
  // The state of one address.
  struct Line {
    std::set<Turn> under_way;
    std::set<Turn> waiting;
    std::optional<TokenBucket> failures;
    TimePoint rests_until{};
    TimePoint remembered_until{};
  };

  void Start(Turn waiting);
  void StartThoseWhoCan();
  void End(Turn under_way);
  void Fail(Turn under_way);
  void Drop(Turn waiting);
  // A handshake from that address has failed.
  void Rest(const Address& line);
  void AwaitRested();
  // Updates the state of the address after a change.
  void Settle(const Address& line);
  void AwaitSlow();
  // The handshake to close once its time is up; `end` if none has to.
  std::map<Turn, UnderWay>::iterator Slowest();

  boost::asio::io_context& io_;
  const Begin begin_;
  const Failed failed_;
  const HandshakeLimits limits_;

  Turn next_turn_ = 0;
  std::map<Turn, UnderWay> under_way_;
  std::map<Endpoint, Turn> by_peer_;  // only those in progress
  std::map<Turn, Waiting> waiting_;
  std::map<Address, Line> lines_;
  std::size_t sweep_at_;
  std::set<Address> ready_;    // addresses whose waiting connections may start
  std::set<Address> delayed_;  // addresses held back by their own handshakes in progress
  std::set<Address> resting_;  // addresses held back by their failures
  Address last_;               // the address that had the last turn
  std::size_t at_once_;        // the limit, reduced by the room there was last
  std::uint64_t slow_ = 0;
  base::Timer timer_;
  base::Timer rest_;
  base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
