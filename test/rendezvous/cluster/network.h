// The network between the agents' hosts and the daemons': connections that deliver in order while
// they live, and break in every way in which TCP connections do.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/wire/liveness_probe.h"
#include "test/rendezvous/cluster/message.h"
#include "test/rendezvous/simulation/random.h"
#include "test/rendezvous/simulation/scheduler.h"

namespace muster::rendezvous {

// Never reused.
using ConnectionId = std::uint64_t;

// When one end learns that something between the hosts has cut the connection.
enum class ToldOfBreak { kAtOnce, kLate, kNever };

class Network {
 public:
  class Server {
   public:
    virtual ~Server() = default;
    virtual void OnAccepted(ConnectionId connection) = 0;
    // `sent`: when the client sent it, in true time.
    virtual void OnMessage(ConnectionId connection, Upward message, TimePoint sent) = 0;
    // Nothing more arrives on it.
    virtual void OnClosed(ConnectionId connection) = 0;
  };
  class Client {
   public:
    virtual ~Client() = default;
    virtual void OnConnected(ConnectionId connection) = 0;
    // The host answers that nothing listens there.
    virtual void OnRefused(ConnectionId connection) = 0;
    virtual void OnMessage(ConnectionId connection, Downward message) = 0;
    virtual void OnClosed(ConnectionId connection) = 0;
  };

  // `places`: where a daemon may be; each is a host of its own.
  Network(Scheduler& scheduler, Random& random, int hosts, int places = 1)
      : scheduler_(scheduler),
        random_(random),
        hosts_(hosts),
        places_(static_cast<std::size_t>(places)),
        links_(static_cast<std::size_t>(hosts * places)) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  int places() const { return static_cast<int>(places_.size()); }

  // Tries to connect: either OnConnected or OnRefused follows, or nothing at all. `client` must
  // outlive the connection, or end it with Abandon() or PowerOff().
  ConnectionId Connect(int host, Client* client, int place = 0);
  void Say(ConnectionId connection, Upward message);
  // The client's process closes its end or dies. All or part of what it sent may still arrive. Its
  // host informs the server.
  void Abandon(ConnectionId connection);
  // The host has lost power: its ends are gone, and the server does not learn of it until the host
  // is back up.
  void PowerOff(int host);

  // Knocks at the port of the first place, over its own connection. Calls `answered` when an answer
  // arrives, however late.
  void Probe(int host, std::function<void(ProbeWord)> answered);

  // For the process of the daemon at that place. While none listens, its host refuses connections.
  void Listen(Server* server, int place = 0) { At(place).server = server; }
  // The answer of the first place's host to a probe, if any.
  std::function<std::optional<ProbeWord>()> on_knock;
  // The daemon has died: its host closes all its connections, silently after a power loss.
  void ServerDied(bool power_loss, int place = 0);
  void DaemonHostIsUp(int place = 0) { At(place).up = true; }
  void Tell(ConnectionId connection, Downward message);
  // Messages already sent are still delivered.
  void CloseByServer(ConnectionId connection);

  // Faults. `until` is in true time; each call replaces the earlier setting. They are between the
  // host and one place, or all.
  void Block(int host, bool up, bool down, TimePoint until, int place = kEveryPlace);
  void Slow(int host, Duration longest_delay, TimePoint until, int place = kEveryPlace);
  void Lose(int host, int per_cent, TimePoint until, int place = kEveryPlace);
  // Cuts the host's connections. What is in transit is lost.
  void Break(int host, ToldOfBreak client, ToldOfBreak server);
  // Something in between resets connections on behalf of the other side: each end only learns of it
  // when it sends something itself.
  void Refuse(int host, bool up, bool down, TimePoint until, int place = kEveryPlace);
  static constexpr int kEveryPlace = -1;

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
  struct Place {
    Server* server = nullptr;
    bool up = true;  // it has power
  };
  struct Close {};
  struct UpwardItem {
    std::variant<Close, Upward> what;
    TimePoint sent{};
  };
  using DownwardItem = std::variant<Close, Downward>;
  template <typename Item>
  struct Stream {
    std::deque<std::pair<TimePoint, Item>> items;  // with the earliest time of arrival
    TimePoint last_arrival{};
    bool pumping = false;
    bool cut = false;
  };
  struct Connection {
    int host = 0;
    int place = 0;
    Client* client = nullptr;  // null: the client's end is closed
    bool accepted = false;
    bool server_open = false;
    bool client_silent = false;  // its host lost power: it answers everything with a reset
    Stream<UpwardItem> up;
    Stream<DownwardItem> down;
  };

  Place& At(int place) { return places_[static_cast<std::size_t>(place)]; }
  const Place& At(int place) const { return places_[static_cast<std::size_t>(place)]; }
  Server& ServerOf(const Connection& connection) { return *At(connection.place).server; }
  const Link& LinkOf(int host, int place) const {
    return links_[static_cast<std::size_t>(place * hosts_ + host)];
  }
  template <typename Change>
  void ForEachLink(int host, int place, Change change);
  Duration Delay(int host, int place);
  TimePoint BlockedUntil(int host, int place, bool up) const;
  bool Refuses(int host, int place, bool up) const;
  // Something sent in that direction reached a host that does not know the connection.
  void Reset(ConnectionId id, Connection& connection, bool up);
  template <typename Item>
  void Reorder(Stream<Item>& stream);
  void Handshake(ConnectionId id);
  TimePoint UnreachableUntil(int host, int place) const;
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
  const int hosts_;
  std::vector<Place> places_;
  std::vector<Link> links_;  // of each host to the first place, then to the next
  ConnectionId last_ = 0;
  std::map<ConnectionId, Connection> connections_;
};

}  // namespace muster::rendezvous
