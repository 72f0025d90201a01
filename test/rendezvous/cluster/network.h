// The network between the hosts of agents and the daemon's: connections that keep their bytes in
// order while they live, and break in every way that TCP's do.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/wire/knock.h"
#include "test/rendezvous/cluster/message.h"
#include "test/rendezvous/cluster/scheduler.h"
#include "test/rendezvous/simulation/random.h"

namespace muster::rendezvous {

// Never reused.
using ConnectionId = std::uint64_t;

// How one end of a connection that something between the hosts has cut learns of it.
enum class ToldOfBreak { kAtOnce, kLate, kNever };

class Network {
 public:
  class Server {
   public:
    virtual ~Server() = default;
    virtual void OnAccepted(ConnectionId connection) = 0;
    // `sent`: when its client said it, in true time.
    virtual void OnMessage(ConnectionId connection, Upward message, TimePoint sent) = 0;
    // Nothing more comes over it.
    virtual void OnClosed(ConnectionId connection) = 0;
  };
  class Client {
   public:
    virtual ~Client() = default;
    virtual void OnConnected(ConnectionId connection) = 0;
    // The host answers that nobody listens.
    virtual void OnRefused(ConnectionId connection) = 0;
    virtual void OnMessage(ConnectionId connection, Downward message) = 0;
    virtual void OnClosed(ConnectionId connection) = 0;
  };

  Network(Scheduler& scheduler, Random& random, int hosts)
      : scheduler_(scheduler), random_(random), links_(static_cast<std::size_t>(hosts)) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // An attempt to connect; exactly one of OnConnected, OnRefused and silence follows. `client` must
  // outlive the connection, or be cut off by Abandon or PowerOff.
  ConnectionId Connect(int host, Client* client);
  void Say(ConnectionId connection, Upward message);
  // The client's process closes its end, or dies: what it has said may still arrive, or a part of
  // that. Its host tells the server.
  void Abandon(ConnectionId connection);
  // The host has lost its power: its ends are gone, and nobody is told until it is back up.
  void PowerOff(int host);

  // A question at the daemon's port, over a connection of its own. `answered` is called when an
  // answer comes, however late.
  void Knock(int host, std::function<void(KnockWord)> answered);

  // The daemon's process: listens, dies, and speaks.
  void Listen(Server* server) { server_ = server; }
  // What its host answers those who knock with, if anything.
  std::function<std::optional<KnockWord>()> on_knock;
  // Its host closes all its connections; with a loss of power silently.
  void ServerDied(bool power_loss);
  void DaemonHostIsUp() { daemon_host_up_ = true; }
  void Tell(ConnectionId connection, Downward message);
  // What was told is still delivered.
  void CloseByServer(ConnectionId connection);

  // Faults. `until` is true time; each moves what was set before.
  void Block(int host, bool up, bool down, TimePoint until);
  void Slow(int host, Duration longest_delay, TimePoint until);
  void Lose(int host, int per_cent, TimePoint until);
  // Cuts the connections of the host: what is under way is lost.
  void Break(int host, ToldOfBreak client, ToldOfBreak server);
  // Something in between answers for the other side, with a reset: each end learns only what comes
  // of its own packets.
  void Refuse(int host, bool up, bool down, TimePoint until);
  bool blocked(int host) const;

  std::size_t connections() const { return connections_.size(); }

 private:
  struct Link {
    TimePoint up_blocked_until{};
    TimePoint down_blocked_until{};
    TimePoint up_refused_until{};
    TimePoint down_refused_until{};
    TimePoint slow_until{};
    Duration longest_delay{};
    TimePoint loses_until{};
    int loss_per_cent = 0;
  };
  struct Close {};
  struct UpwardItem {
    std::variant<Close, Upward> what;
    TimePoint sent{};
  };
  using DownwardItem = std::variant<Close, Downward>;
  template <typename Item>
  struct Stream {
    std::deque<std::pair<TimePoint, Item>> items;  // and when each arrives at the earliest
    TimePoint last_arrival{};
    bool pumping = false;
    bool cut = false;
  };
  struct Connection {
    int host = 0;
    Client* client = nullptr;  // null: its end is closed
    bool accepted = false;
    bool server_open = false;
    bool client_silent = false;  // its host lost power: an answer to anything is a reset
    Stream<UpwardItem> up;
    Stream<DownwardItem> down;
  };

  Duration Delay(int host);
  TimePoint BlockedUntil(int host, bool up) const;
  bool Refuses(int host, bool up) const;
  // What was sent over it that way came to somebody who knows of no such connection.
  void Reset(ConnectionId id, Connection& connection, bool up);
  template <typename Item>
  void Reorder(Stream<Item>& stream);
  void Handshake(ConnectionId id);
  TimePoint UnreachableUntil(int host) const;
  template <typename Item>
  void Put(ConnectionId id, Connection& connection, Stream<Item>& stream, Item item);
  void DeliverUp(ConnectionId id, Connection& connection, UpwardItem item);
  void DeliverDown(ConnectionId id, Connection& connection, DownwardItem item);
  template <typename Item>
  void Pump(ConnectionId id, bool up);
  void CloseUp(ConnectionId id, Connection& connection);
  void CloseDown(ConnectionId id, Connection& connection);
  void ForgetIfDone(ConnectionId id);

  Scheduler& scheduler_;
  Random& random_;
  std::vector<Link> links_;
  Server* server_ = nullptr;
  bool daemon_host_up_ = true;
  ConnectionId last_ = 0;
  std::map<ConnectionId, Connection> connections_;
};

}  // namespace muster::rendezvous
