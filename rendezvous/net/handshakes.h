// How many connections may be busy with becoming connections.
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
#include <boost/asio/steady_timer.hpp>

#include "base/lifetime.h"
#include "rendezvous/core/limits.h"
#include "rendezvous/core/pace.h"
#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {

struct HandshakeLimits {
  std::size_t at_once = limits::kHandshakes.most;
  std::size_t of_address = limits::kHandshakesOfAddress.most;
  // How long one may take while others wait for it; when none does, gRPC's own limit counts.
  std::chrono::milliseconds patience = std::chrono::seconds(limits::kHandshakeSeconds.most);
  // Of one address, of those that fail.
  int failures_in_a_second = static_cast<int>(limits::kFailedHandshakesInASecond.most);
  int failures_at_once = static_cast<int>(limits::kFailedHandshakesAtOnce.most);
};

// From its first byte until its first call a connection is nobody's yet, and costs gRPC 70 KB of
// memory and, with TLS, milliseconds of time: so many may be in that state at once, a part of them
// from one address. The others wait, at no cost but their descriptors. Addresses take turns; of one
// address the newest is first, as the one that is most likely still wanted: in a flood of silent
// connections from the address of an agent, the agent gets its turn.
//
// An address whose handshakes fail has to wait between them, so that what it costs others is little
// and not as much as it can send. Those of its connections that would not fail wait as well, which
// is what an agent at the address of an attacker has to bear; connections that are there notice
// nothing.
//
// An address is an IPv4 address, or the first half of an IPv6 address, which is what one host or
// site is given.
//
// Lives on the loop's thread.
class Handshakes {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  // Begins the handshake. Must not call back.
  using Begin = std::function<void(Socket)>;
  // A connection from that address has ended before its first call, or was ended here. May be
  // empty.
  using Failed = std::function<void(const boost::asio::ip::address& host)>;

  Handshakes(boost::asio::io_context& io, Begin begin, Failed failed = {},
             HandshakeLimits limits = {});
  Handshakes(const Handshakes&) = delete;
  Handshakes& operator=(const Handshakes&) = delete;

  // What file descriptors allow at the time. Each handshake under way takes two.
  struct Room {
    std::size_t at_once;
    std::size_t waiting;
  };

  // A connection whose first byte is there. If more would wait than there is room for, the one that
  // has waited longest is closed, of the newcomer's own address if there is one. Returns how many
  // were.
  std::size_t Add(Socket connection, const Room& room);

  // The connection from there has made a call. True: it was its first.
  bool Called(const Peer& peer);

  std::size_t under_way() const { return under_way_.size(); }
  std::size_t waiting() const { return waiting_.size(); }
  // Ended, as they took too long while others waited.
  std::uint64_t slow() const { return slow_; }

 private:
  using Address = boost::asio::ip::address;
  using Endpoint = boost::asio::ip::tcp::endpoint;
  // In order of arrival, or of beginning.
  using Turn = std::uint64_t;

  struct UnderWay {
    // A second descriptor of the connection, which tells when gRPC has shut it down.
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
  // What there is of one address, or is remembered.
  struct Line {
    std::set<Turn> under_way;
    std::set<Turn> waiting;
    std::optional<Pace> failures;
    TimePoint rests_until{};
    TimePoint remembered_until{};
  };

  void Start(Turn waiting);
  void StartThoseWhoCan();
  void End(Turn under_way);
  void Fail(Turn under_way);
  void Drop(Turn waiting);
  // One of the address has failed.
  void Rest(const Address& line);
  void AwaitRested();
  // Brings what is known of the address up to date after a change.
  void Settle(const Address& line);
  void AwaitSlow();
  // The one that has to give way when its time is over; `end` when nobody has to.
  std::map<Turn, UnderWay>::iterator Slowest();

  boost::asio::io_context& io_;
  const Begin begin_;
  const Failed failed_;
  const HandshakeLimits limits_;

  Turn next_turn_ = 0;
  std::map<Turn, UnderWay> under_way_;
  std::map<Endpoint, Turn> by_peer_;  // of those under way
  std::map<Turn, Waiting> waiting_;
  std::map<Address, Line> lines_;
  std::size_t sweep_at_;
  std::set<Address> ready_;    // who waits there may begin, as far as the address is concerned
  std::set<Address> delayed_;  // who waits there has to wait for others of the address
  std::set<Address> resting_;  // who waits there has to wait as others of the address have failed
  Address last_;               // whose turn it was
  std::size_t at_once_;        // by the limit, and by the room there was last
  std::uint64_t slow_ = 0;
  boost::asio::steady_timer timer_;
  bool awaits_slow_ = false;
  boost::asio::steady_timer rest_;
  bool awaits_rested_ = false;
  base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
