// One port for the rendezvous and for the workers' store: torchrun's static mode names only one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/status/statusor.h"
#include "base/async/timer.h"
#include "base/lifetime.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/net/flood_guard.h"
#include "rendezvous/net/grpc_connections.h"
#include "rendezvous/net/handshakes.h"
#include "rendezvous/net/peer.h"

namespace muster::rendezvous {

struct SharedPortOptions {
  // Connections with this descriptor number or higher are closed, so that `reserve` descriptors
  // always remain for files, workers and gRPC's own use. nullopt: the current RLIMIT_NOFILE less
  // the reserve.
  std::optional<int> fd_cap;
  int reserve = 32;
  // gRPC uses TLS here, and clients without it are turned away; else the other way around.
  bool secure = false;
  // How long a connection may be silent while no store is served here.
  std::chrono::milliseconds handshake_timeout = std::chrono::seconds(limits::kSilentSeconds.most);
  // Called with the address of a connection that was handed to gRPC and ended before its first
  // call. May be empty.
  std::function<void(const std::string& address)> on_failed;
  // Calls answered since the last call of this, by peer. May be empty: then calls that gRPC refuses
  // by itself are not detected.
  std::function<std::map<std::string, std::uint64_t>()> take_calls;
  // How many of one connection's calls may be in flight there.
  std::uint64_t calls_of_connection = limits::kCallsOfConnection.most;
  // Called with a connection's address and call count after it was closed for such calls. May be
  // empty.
  std::function<void(const std::string& address, std::uint64_t calls)> on_hidden_calls;
  // A connection of gRPC's ends when the kernel has heard nothing from its host for this long; at
  // least 15 s.
  std::chrono::seconds host_silence{25};
  // A flood is over when no connection has been turned away for this long.
  std::chrono::milliseconds flood_pause = std::chrono::seconds(5);
};

// Counts of connections since the start.
struct SharedPortStats {
  std::uint64_t accepted = 0;          // from the kernel; includes all others
  std::uint64_t refused_over_cap = 0;  // out of descriptors
  std::uint64_t timed_out = 0;         // silent for too long, or displaced while silent
  std::uint64_t garbage = 0;           // began with an unknown protocol
  std::uint64_t wrong_door = 0;        // HTTP/2 without TLS where required, or TLS where not
  std::uint64_t knocks = 0;            // probes whether the daemon is dead (wire/liveness_probe.h)
  std::uint64_t idle = 0;              // HTTP/2 without an agent, displaced by others
  std::uint64_t slow = 0;  // no first call while others waited for their handshakes (handshakes.h)

  bool operator==(const SharedPortStats&) const = default;
};

// Accepts connections and hands each on by its first byte (wire/first_byte.h), which it leaves
// unread. One that begins with TLS counts as silent until its first record is complete, as that
// names the authority (first_byte.h). A probe gets no answer: that is how a living daemon replies.
//
// gRPC refuses some calls by itself: the call gate (call_gate.h) never sees them, and a connection
// with nothing else takes gigabytes in a minute. The only sign is that bytes arrive and no calls.
// So a few times a second, for each connection that has received bytes, this compares the calls
// gRPC has begun with those seen.
//
// A host that makes one useless connection after another is blocked (flood_guard.h): connections
// that end without a word or stay silent for too long, that use an unknown protocol or the wrong
// one, probes and death notices, and failed handshakes.
//
// No number of connections makes it stop accepting. gRPC's own acceptor never recovers from an
// accept() that fails for lack of a descriptor (CVE-2023-4785); here that does not happen, as
// connections are turned away before. Silent connections may take a quarter of the descriptors;
// beyond that the oldest is dropped. A client that speaks at once is never among them; the others
// have a few seconds.
//
// Where a store is served, silence has no time limit, and silent connections may take half: each of
// c10d's clients before PyTorch 2.1 has two connections, one of which stays silent unless its
// program watches a key. If that one is closed, one of the client's threads spins from then on
// (TCPStore.cpp of 1.9 to 2.0, TCPStoreWorkerDaemon::run).
//
// Connections that speak HTTP/2 are handed to gRPC a few at a time (handshakes.h); those waiting
// for that count as silent. Those without an attending agent may take a quarter. One with a waiting
// call stays, and beyond the quarter calls that would wait are refused. There are at most 4096 idle
// ones, as each costs gRPC some memory; more are dropped to make room (grpc_connections.h), and
// gRPC itself ends them after a few seconds without a call (server.cc). So at least a quarter is
// left for attending agents, and for workers.
//
// A host that has lost power or network falls silent. Its attending agents and waiting calls are
// given up once the kernel has heard nothing from the host for `host_silence`; a process that is
// merely stopped is not affected. Workers' own connections are left to their programs.
//
// Lives on the loop's thread.
class SharedPort {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  // Takes over a non-blocking connection of which nothing has been read. Must not destroy the port.
  using Taker = std::function<void(Socket)>;

  // `sockets` from ListenAt. The takers are called from the loop.
  SharedPort(boost::asio::io_context& io, std::vector<boost::asio::ip::tcp::acceptor> sockets,
             Taker take_grpc, Taker take_death_notice, SharedPortOptions options = {});
  // Closes the listening sockets and the waiting connections.
  ~SharedPort();
  SharedPort(const SharedPort&) = delete;
  SharedPort& operator=(const SharedPort&) = delete;

  // Takes connections that speak c10d's protocol from now on; null: they are closed, as no store is
  // served here.
  void OnStoreConnection(Taker take_store);

  // An agent attends on a connection that was handed to gRPC, as long as a copy of the result
  // exists: the connection does not count as idle.
  std::shared_ptr<void> Attend(const Peer& peer) { return grpc_.Attend(peer); }

  // A call waits on such a connection, likewise. ResourceExhausted when calls wait on so many that
  // no more descriptors can be spared.
  absl::StatusOr<std::shared_ptr<void>> Wait(const Peer& peer);

  // Ends a connection that was handed to gRPC.
  void Drop(const Peer& peer) { grpc_.Drop(peer); }

  // True if some connections have not made their first call yet.
  bool awaits_calls() const { return handshakes_.under_way() > 0; }
  // A call was made on the connection from `peer`.
  void Called(const Peer& peer);

  // Connections that have not sent anything yet.
  std::size_t silent() const { return silent_.size(); }

  SharedPortStats stats() const;

 private:
  // A listening socket, and the timer for its pause when descriptors run out.
  struct Door {
    boost::asio::ip::tcp::acceptor acceptor;
    std::unique_ptr<base::Timer> pause;
    // Of the connection that is accepted next: one that was reset meanwhile does not know it.
    boost::asio::ip::tcp::endpoint peer{};
  };
  struct Silent {
    Socket connection;
    boost::asio::ip::address host;
    std::chrono::steady_clock::time_point since;
  };
  // In order of arrival. Handlers hold only the key, as the connection may be gone.
  using SilentMap = std::map<std::uint64_t, Silent>;

  void Accept(Door& door);
  void PauseAccepting(Door& door);
  void Admit(Socket connection, const boost::asio::ip::address& host);
  void AwaitFirstByte(SilentMap::iterator silent);
  // Hands the connection on if it has sent something or ended; otherwise leaves it and returns
  // false.
  bool HandOn(SilentMap::iterator silent);
  void HandOn(Socket connection, char first, const boost::asio::ip::address& host);
  void HandToGrpc(Socket connection, const boost::asio::ip::address& host);
  // Its handshake may begin.
  void GiveToGrpc(Socket connection);
  void AwaitLook();
  void LookForHiddenCalls();
  // Sends `words`, in the peer's own protocol, and closes the connection.
  void Answer(Socket connection, std::string_view words);
  // How many connections that speak HTTP/2 without an agent are allowed.
  std::size_t GrpcShare() const { return static_cast<std::size_t>(FdCap()) / 4; }
  // Connections with this descriptor number or higher are turned away.
  int FdCap() const;
  void DropSurplus(int fd_cap);
  void AwaitOldest();
  void DropOverdue();
  // Closes the connection and counts it against its host.
  void TurnAway(Socket connection, const boost::asio::ip::address& host);
  // Logs the flood to which a turned-away connection belongs.
  void TellOfFlood(const boost::asio::ip::address& newcomer);
  void AwaitEndOfFlood();
  void Close(Socket& connection);

  const SharedPortOptions options_;
  const Taker take_grpc_;
  const Taker take_death_notice_;
  Taker take_store_;
  std::list<Door> doors_;

  FloodGuard flood_guard_;
  GrpcConnections grpc_;
  StreamCounts stream_counts_;
  base::Timer look_;
  Handshakes handshakes_;
  SilentMap silent_;
  std::uint64_t next_id_ = 0;
  // Set to when the oldest is overdue.
  base::Timer overdue_;

  SharedPortStats stats_;
  // Connections turned away in the current flood; 0 when there is none.
  std::uint64_t flood_ = 0;
  base::Timer flood_end_;
  bool told_of_pause_ = false;
  base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
