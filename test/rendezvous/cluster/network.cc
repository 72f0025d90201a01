#include "test/rendezvous/cluster/network.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace muster::rendezvous {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A lost packet is sent again after this, and after twice as long if it is lost again.
constexpr Duration kRetransmission = milliseconds(200);
constexpr int kMostRetransmissions = 6;
// After an obstacle has gone, how long until the next attempt to get through.
constexpr Duration kLongestBackOff = seconds(2);
// When an end is told late of a break: longer than any lease.
constexpr Duration kLate = seconds(12);
constexpr Duration kLatest = seconds(40);

}  // namespace

ConnectionId Network::Connect(int host, Client* client, int place) {
  const ConnectionId id = ++last_;
  Connection& connection = connections_[id];
  connection.host = host;
  connection.place = place;
  connection.client = client;
  scheduler_.After(Delay(host, place), [this, id] { Handshake(id); });
  return id;
}

// The client's first packet has come to a daemon's host, unless something is in its way.
void Network::Handshake(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || found->second.client == nullptr) {
    if (found != connections_.end()) connections_.erase(found);
    return;
  }
  Connection& connection = found->second;
  if (Refuses(connection.host, connection.place, true)) {
    Client* const client = connection.client;
    connections_.erase(found);
    return client->OnRefused(id);
  }
  const TimePoint blocked = UnreachableUntil(connection.host, connection.place);
  if (blocked > scheduler_.now()) {
    scheduler_.At(blocked + random_.Between(Duration::zero(), kLongestBackOff),
                  [this, id] { Handshake(id); });
    return;
  }
  connection.accepted = true;
  Server* const server = At(connection.place).server;
  if (server != nullptr) {
    connection.server_open = true;
    server->OnAccepted(id);
  }
  const bool refused = server == nullptr;
  const TimePoint answered =
      std::max(scheduler_.now(), BlockedUntil(connection.host, connection.place, false)) +
      Delay(connection.host, connection.place);
  connection.down.last_arrival = answered;
  scheduler_.At(answered, [this, id, refused] {
    const auto still = connections_.find(id);
    if (still == connections_.end() || still->second.client == nullptr) return;
    Client* const client = still->second.client;
    if (refused) {
      connections_.erase(still);
      client->OnRefused(id);
    } else {
      client->OnConnected(id);
    }
  });
}

// Nothing comes to the daemon's host before.
TimePoint Network::UnreachableUntil(int host, int place) const {
  const bool no_power = At(place).server == nullptr && !At(place).up;
  // Whose answer is refused on its way tries again, too.
  const TimePoint answered = LinkOf(host, place).down_refused_until;
  return std::max({BlockedUntil(host, place, true), answered,
                   no_power ? scheduler_.now() + seconds(1) : TimePoint{}});
}

void Network::Probe(int host, std::function<void(ProbeWord)> answered) {
  scheduler_.After(Delay(host, 0), [this, host, answered = std::move(answered)] {
    const TimePoint blocked = UnreachableUntil(host, 0);
    if (blocked > scheduler_.now()) {
      scheduler_.At(blocked + random_.Between(Duration::zero(), kLongestBackOff),
                    [this, host, answered] { Probe(host, answered); });
      return;
    }
    if (Refuses(host, 0, true) || Refuses(host, 0, false)) return;
    const std::optional<ProbeWord> word = on_knock();
    if (!word) return;
    const TimePoint back =
        std::max(scheduler_.now(), BlockedUntil(host, 0, false)) + Delay(host, 0);
    scheduler_.At(back, [answered, word] { answered(*word); });
  });
}

void Network::Say(ConnectionId id, Upward message) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Put(id, found->second, found->second.up,
      UpwardItem{.what = std::move(message), .sent = scheduler_.now()});
  Reorder(found->second.up);
}

void Network::Tell(ConnectionId id, Downward message) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Put(id, found->second, found->second.down, DownwardItem(std::move(message)));
  Reorder(found->second.down);
}

// Calls of one connection are streams of their own.
template <typename Item>
void Network::Reorder(Stream<Item>& stream) {
  if (stream.items.size() < 2) return;
  Item& last = stream.items.back().second;
  Item& before = stream.items[stream.items.size() - 2].second;
  const auto is_of_store = [](const Item& item) {
    if constexpr (std::is_same_v<Item, UpwardItem>) {
      const Upward* const message = std::get_if<Upward>(&item.what);
      return message != nullptr && (std::holds_alternative<StoreRequest>(*message) ||
                                    std::holds_alternative<StoreCancel>(*message));
    } else {
      const Downward* const message = std::get_if<Downward>(&item);
      return message != nullptr && std::holds_alternative<StoreReply>(*message);
    }
  };
  if (is_of_store(last) && is_of_store(before) && random_.Chance(1, 2)) std::swap(last, before);
}

void Network::Abandon(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  connection.client = nullptr;
  if (!connection.accepted) return;  // Handshake finds it gone
  // A reset overtakes what has not been delivered; an orderly end comes after it.
  std::size_t lost = connection.up.items.size();
  if (random_.Chance(1, 2)) lost = static_cast<std::size_t>(random_.Below(lost + 1));
  if (random_.Chance(1, 2)) lost = 0;
  connection.up.items.resize(connection.up.items.size() - lost);
  CloseUp(id, connection);
  ForgetIfDone(id);
}

void Network::PowerOff(int host) {
  for (auto& [id, connection] : connections_) {
    if (connection.host != host) continue;
    connection.client = nullptr;
    connection.client_silent = true;
    connection.up.items.clear();
    connection.up.cut = true;
  }
}

void Network::ServerDied(bool power_loss, int place) {
  At(place).server = nullptr;
  if (power_loss) At(place).up = false;
  std::vector<ConnectionId> ids;
  for (auto& [id, connection] : connections_) {
    if (!connection.server_open || connection.place != place) continue;
    connection.server_open = false;
    if (power_loss) {
      connection.down.items.clear();
      connection.down.cut = true;
    } else {
      ids.push_back(id);
    }
  }
  for (const ConnectionId id : ids) CloseDown(id, connections_.at(id));
}

void Network::CloseByServer(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  found->second.server_open = false;
  CloseDown(id, found->second);
  ForgetIfDone(id);
}

template <typename Change>
void Network::ForEachLink(int host, int place, Change change) {
  for (int each = 0; each < places(); ++each) {
    if (place != kEveryPlace && place != each) continue;
    change(links_[static_cast<std::size_t>(each * hosts_ + host)]);
  }
}

void Network::Block(int host, bool up, bool down, TimePoint until, int place) {
  ForEachLink(host, place, [=](Link& link) {
    if (up) link.up_blocked_until = until;
    if (down) link.down_blocked_until = until;
  });
}

void Network::Slow(int host, Duration longest_delay, TimePoint until, int place) {
  ForEachLink(host, place, [=](Link& link) {
    link.longest_delay = longest_delay;
    link.slow_until = until;
  });
}

void Network::Lose(int host, int per_cent, TimePoint until, int place) {
  ForEachLink(host, place, [=](Link& link) {
    link.loss_per_cent = per_cent;
    link.loses_until = until;
  });
}

void Network::Break(int host, ToldOfBreak client, ToldOfBreak server) {
  const auto when = [this](ToldOfBreak told) {
    return told == ToldOfBreak::kAtOnce ? Duration::zero() : random_.Between(kLate, kLatest);
  };
  for (auto& [id, connection] : connections_) {
    if (connection.host != host || !connection.accepted) continue;
    connection.up.items.clear();
    connection.up.cut = true;
    connection.down.items.clear();
    connection.down.cut = true;
    if (server != ToldOfBreak::kNever) {
      scheduler_.After(when(server), [this, id = id] {
        const auto found = connections_.find(id);
        if (found == connections_.end() || !found->second.server_open) return;
        found->second.server_open = false;
        ServerOf(found->second).OnClosed(id);
        ForgetIfDone(id);
      });
    }
    if (client != ToldOfBreak::kNever) {
      scheduler_.After(when(client), [this, id = id] {
        const auto found = connections_.find(id);
        if (found == connections_.end() || found->second.client == nullptr) return;
        Client* const told = std::exchange(found->second.client, nullptr);
        ForgetIfDone(id);
        told->OnClosed(id);
      });
    }
  }
}

void Network::Refuse(int host, bool up, bool down, TimePoint until, int place) {
  ForEachLink(host, place, [=](Link& link) {
    if (up) link.up_refused_until = until;
    if (down) link.down_refused_until = until;
  });
}

bool Network::Refuses(int host, int place, bool up) const {
  const Link& link = LinkOf(host, place);
  return scheduler_.now() < (up ? link.up_refused_until : link.down_refused_until);
}

void Network::Reset(ConnectionId id, Connection& connection, bool up) {
  if (up) {
    connection.up.items.clear();
    connection.up.cut = true;
    Client* const told = std::exchange(connection.client, nullptr);
    ForgetIfDone(id);
    if (told != nullptr) told->OnClosed(id);
    return;
  }
  connection.down.items.clear();
  connection.down.cut = true;
  const bool was_open = std::exchange(connection.server_open, false);
  Server* const server = At(connection.place).server;
  ForgetIfDone(id);
  if (was_open) server->OnClosed(id);
}

Duration Network::Delay(int host, int place) {
  const Link& link = LinkOf(host, place);
  Duration delay = microseconds(100 + random_.Below(900));
  if (scheduler_.now() < link.slow_until) {
    delay += microseconds(random_.Below(link.longest_delay / microseconds(1) + 1));
  }
  if (scheduler_.now() < link.loses_until) {
    Duration wait = kRetransmission;
    for (int i = 0; i < kMostRetransmissions && random_.Chance(link.loss_per_cent, 100); ++i) {
      delay += wait;
      wait *= 2;
    }
  }
  return delay;
}

TimePoint Network::BlockedUntil(int host, int place, bool up) const {
  const Link& link = LinkOf(host, place);
  return up ? link.up_blocked_until : link.down_blocked_until;
}

template <typename Item>
void Network::Put(ConnectionId id, Connection& connection, Stream<Item>& stream, Item item) {
  if (stream.cut) return;
  stream.last_arrival =
      std::max(stream.last_arrival, scheduler_.now() + Delay(connection.host, connection.place));
  stream.items.emplace_back(stream.last_arrival, std::move(item));
  if (std::exchange(stream.pumping, true)) return;
  constexpr bool kUp = std::is_same_v<Item, UpwardItem>;
  scheduler_.At(stream.last_arrival, [this, id] { Pump<Item>(id, kUp); });
}

// Delivers what has arrived; the rest when it does.
template <typename Item>
void Network::Pump(ConnectionId id, bool up) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  Stream<Item>* stream;
  if constexpr (std::is_same_v<Item, UpwardItem>) {
    stream = &connection.up;
  } else {
    stream = &connection.down;
  }
  stream->pumping = false;
  if (stream->items.empty()) return;
  TimePoint next = stream->items.front().first;
  const TimePoint blocked = BlockedUntil(connection.host, connection.place, up);
  if (blocked > scheduler_.now()) {
    next = blocked + random_.Between(Duration::zero(), kLongestBackOff);
  } else if (next <= scheduler_.now()) {
    if (Refuses(connection.host, connection.place, up)) return Reset(id, connection, up);
    Item item = std::move(stream->items.front().second);
    stream->items.pop_front();
    if (!stream->items.empty()) {
      stream->pumping = true;
      scheduler_.At(stream->items.front().first, [this, id, up] { Pump<Item>(id, up); });
    }
    // Last, as it may close the connection.
    if constexpr (std::is_same_v<Item, UpwardItem>) {
      DeliverUp(id, connection, std::move(item));
    } else {
      DeliverDown(id, connection, std::move(item));
    }
    return;
  }
  stream->pumping = true;
  scheduler_.At(next, [this, id, up] { Pump<Item>(id, up); });
}

void Network::DeliverUp(ConnectionId id, Connection& connection, UpwardItem item) {
  if (std::holds_alternative<Close>(item.what)) {
    const bool was_open = std::exchange(connection.server_open, false);
    Server* const server = At(connection.place).server;
    ForgetIfDone(id);
    if (was_open) server->OnClosed(id);
    return;
  }
  if (connection.server_open) {
    return ServerOf(connection).OnMessage(id, std::move(std::get<Upward>(item.what)), item.sent);
  }
  // Nobody is there any more: the daemon's host says so.
  if (At(connection.place).up && connection.client != nullptr) {
    connection.down.cut = false;
    CloseDown(id, connection);
  }
}

void Network::DeliverDown(ConnectionId id, Connection& connection, DownwardItem item) {
  if (std::holds_alternative<Close>(item)) {
    Client* const client = std::exchange(connection.client, nullptr);
    ForgetIfDone(id);
    if (client != nullptr) client->OnClosed(id);
    return;
  }
  if (connection.client != nullptr) {
    return connection.client->OnMessage(id, std::move(std::get<Downward>(item)));
  }
  // The client's host is back up, or was never down, and knows nothing of the connection.
  if (connection.server_open && !connection.up.pumping) {
    connection.up.cut = false;
    CloseUp(id, connection);
  }
}

void Network::CloseUp(ConnectionId id, Connection& connection) {
  Put(id, connection, connection.up, UpwardItem{.what = Close{}, .sent = scheduler_.now()});
}

void Network::CloseDown(ConnectionId id, Connection& connection) {
  Put(id, connection, connection.down, DownwardItem(Close{}));
}

void Network::ForgetIfDone(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (found->second.client == nullptr && !found->second.server_open) connections_.erase(found);
}

}  // namespace muster::rendezvous
