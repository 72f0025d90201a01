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
#include <boost/asio/steady_timer.hpp>

#include "absl/status/statusor.h"
#include "base/lifetime.h"
#include "rendezvous/core/limits.h"
#include "rendezvous/net/flood_guard.h"
#include "rendezvous/net/grpc_connections.h"
#include "rendezvous/net/handshakes.h"
#include "rendezvous/net/stream_counts.h"
#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {

struct SharedPortOptions {
  // Connections whose descriptor has this number or a higher one are turned away, so that those
  // below `reserve` are always there for files, workers and what gRPC opens itself. nullopt: what
  // RLIMIT_NOFILE says at the time, less the reserve.
  std::optional<int> fd_cap;
  int reserve = 32;
  // gRPC speaks TLS here, and to who does not it is not spoken at all; else the other way around.
  bool secure = false;
  // How long a connection may be silent, while no store is served here.
  std::chrono::milliseconds handshake_timeout = std::chrono::seconds(limits::kSilentSeconds.most);
  // Told the address of a connection that was gRPC's and ended before its first call. May be empty.
  std::function<void(const std::string& address)> on_failed;
  // Calls that have been answered since this was asked last, by where they come from. May be empty:
  // then calls that gRPC refuses by itself are not looked for.
  std::function<std::map<std::string, std::uint64_t>()> take_calls;
  // So many of one connection may be on their way there.
  std::uint64_t calls_of_connection = limits::kCallsOfConnection.most;
  // Told of a connection that was ended for such calls, and how many there were. May be empty.
  std::function<void(const std::string& address, std::uint64_t calls)> on_hidden_calls;
  // A connection of gRPC's ends when the kernel has heard nothing of its host for this long; 15 s
  // at least.
  std::chrono::seconds host_silence{25};
  // A flood is over when no connection has been turned away for this long.
  std::chrono::milliseconds flood_pause = std::chrono::seconds(5);
};

// What has become of connections since the beginning.
struct SharedPortStats {
  std::uint64_t accepted = 0;          // by the kernel's side; all the others are among them
  std::uint64_t refused_over_cap = 0;  // there were too few descriptors
  std::uint64_t timed_out = 0;         // silent for too long, or one silent connection too many
  std::uint64_t garbage = 0;           // began with something that nobody here understands
  std::uint64_t wrong_door = 0;        // HTTP/2 without TLS where it is asked for, or TLS where not
  std::uint64_t knocks = 0;            // asked whether the daemon is dead (wire/knock.h)
  std::uint64_t idle = 0;              // HTTP/2 without an agent, and there were too many of them
  std::uint64_t slow = 0;  // no call yet, while others waited for their handshakes (handshakes.h)

  bool operator==(const SharedPortStats&) const = default;
};

// Accepts connections and hands each on by its first byte (wire/first_byte.h), which it leaves
// unread. A knock gets no answer: that is how a living daemon replies.
//
// gRPC refuses some calls by itself and shows them to nobody: they are not counted where calls are
// (call_gate.h), and one connection that does nothing else takes gigabytes in a minute. The only
// sign of them is that bytes come and no calls. Nobody tells of that, so a few times a second it is
// looked over which connections bytes have come, and of these how many calls gRPC has begun.
//
// A host whose connections come to nothing one after the other is kept away (flood_guard.h): those
// that end without a word or are silent for too long, that nobody here understands or come by the
// wrong door, knocks and death notices, and handshakes that fail.
//
// No number of connections makes it deaf. gRPC's own acceptor never recovers from an accept() that
// fails for want of a descriptor (CVE-2023-4785); here that does not happen, as connections are
// turned away before that. Silent connections may take a quarter of the descriptors, and beyond
// that the oldest is dropped; one that speaks at once is never among them. They have a few seconds.
//
// Where a store is served, silence has no time limit, and silent connections may take half: each of
// c10d's clients before PyTorch 2.1 has two connections, of which one never says a word unless its
// program watches a key. When that one is closed, one of the client's threads spins from then on
// (TCPStore.cpp of 1.9 to 2.0, TCPStoreWorkerDaemon::run).
//
// Connections that speak HTTP/2 become gRPC's a few at a time (handshakes.h); those that wait for
// it count as silent ones do. Those over which no agent attends may take a quarter. Where a call
// waits over one of them it stays, and beyond the quarter calls that would wait are refused. Of the
// idle ones, 4096 at most, as each costs gRPC some memory, some are dropped to make room
// (grpc_connections.h), and gRPC itself ends them after a few seconds without a call (server.cc).
// So at least a quarter is left for agents that attend, and for workers.
//
// A host that has lost its power or its network says nothing more. Who attends or waits over HTTP/2
// is gone if the kernel hears nothing of that host for `host_silence`; a process that is merely
// stopped is not. Workers' own connections are left to their programs.
//
// Lives on the loop's thread.
class SharedPort {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  // Takes over a non-blocking connection of which nothing has been read. Must not destroy the port.
  using Taker = std::function<void(Socket)>;

  // `sockets` as ListenAt makes them. The takers are called from the loop.
  SharedPort(boost::asio::io_context& io, std::vector<boost::asio::ip::tcp::acceptor> sockets,
             Taker take_grpc, Taker take_death_notice, SharedPortOptions options = {});
  // Closes the listening sockets and the waiting connections.
  ~SharedPort();
  SharedPort(const SharedPort&) = delete;
  SharedPort& operator=(const SharedPort&) = delete;

  // Who takes connections that speak c10d's protocol from now on; null: they are closed, as nobody
  // serves a store here.
  void OnStoreConnection(Taker take_store);

  // An agent attends over a connection that was handed to gRPC, for as long as a copy of the result
  // exists: the connection must not be taken for an idle one.
  std::shared_ptr<void> Attend(const Peer& peer) { return grpc_.Attend(peer); }

  // A call waits over such a connection, likewise. ResourceExhausted when calls wait over so many
  // that no more descriptors can be spared.
  absl::StatusOr<std::shared_ptr<void>> Wait(const Peer& peer);

  // Ends a connection that was handed to gRPC.
  void Drop(const Peer& peer) { grpc_.Drop(peer); }

  // Some connections have not made their first call yet.
  bool awaits_calls() const { return handshakes_.under_way() > 0; }
  // A call was made over the connection from there.
  void Called(const Peer& peer);

  // Connections that have said nothing yet.
  std::size_t silent() const { return silent_.size(); }

  SharedPortStats stats() const;

 private:
  // A listening socket, and the timer for its pause when descriptors run out.
  struct Door {
    boost::asio::ip::tcp::acceptor acceptor;
    boost::asio::steady_timer pause;
    // Of the connection that is accepted next: one that was reset meanwhile does not know it.
    boost::asio::ip::tcp::endpoint peer{};
  };
  struct Silent {
    Socket connection;
    boost::asio::ip::address host;
    std::chrono::steady_clock::time_point since;
  };
  // In order of arrival. Handlers hold only the number, as the connection may be gone.
  using SilentMap = std::map<std::uint64_t, Silent>;

  void Accept(Door& door);
  void PauseAccepting(Door& door);
  void Admit(Socket connection, const boost::asio::ip::address& host);
  void AwaitFirstByte(SilentMap::iterator silent);
  // Hands the connection on if it has said something or ended; otherwise leaves it and returns
  // false.
  bool HandOn(SilentMap::iterator silent);
  void HandOn(Socket connection, char first, const boost::asio::ip::address& host);
  void HandToGrpc(Socket connection, const boost::asio::ip::address& host);
  // Its handshake may begin.
  void GiveToGrpc(Socket connection);
  void AwaitLook();
  void LookForHiddenCalls();
  // Says so in the peer's own protocol, and closes the connection.
  void Answer(Socket connection, std::string_view words);
  // What all connections that speak HTTP/2 without an agent may take.
  std::size_t GrpcShare() const { return static_cast<std::size_t>(FdCap()) / 4; }
  // The descriptor number from which on connections are turned away.
  int FdCap() const;
  void DropSurplus(int fd_cap);
  void AwaitOldest();
  void DropOverdue();
  // Closes the connection.
  void TurnAway(Socket connection, const boost::asio::ip::address& host);
  // Reports the flood to which a turned-away connection belongs.
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
  boost::asio::steady_timer look_;
  bool awaits_look_ = false;
  Handshakes handshakes_;
  SilentMap silent_;
  std::uint64_t next_id_ = 0;
  // Set to when the oldest is overdue.
  boost::asio::steady_timer overdue_;
  bool awaits_overdue_ = false;

  SharedPortStats stats_;
  // Connections turned away in the current flood; 0 when there is none.
  std::uint64_t flood_ = 0;
  boost::asio::steady_timer flood_end_;
  bool told_of_pause_ = false;
  base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
