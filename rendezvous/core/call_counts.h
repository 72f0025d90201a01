// How many calls are under way: over each connection, of each tenant, and in all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// Has no thread of its own: whoever counts sees to that.
class CallCounts {
 public:
  // A connection's own number, which no other ever has.
  using Connection = std::uint64_t;

  struct Limits {
    std::size_t of_connection = 0;
    // Of those that are refused for having more than these, before the connection is a flood:
    // never, unless said otherwise.
    std::uint64_t refused_of_connection = std::numeric_limits<std::uint64_t>::max();
    std::size_t of_tenant = 0;
    std::size_t of_all = 0;
  };

  explicit CallCounts(const Limits& limits) : limits_(limits) {}

  enum class Verdict {
    kBegun,
    kRefused,  // it is one too many, and is not counted but as refused
    kFlood,    // so it is, and the connection should be ended; said once, as long as it has calls
  };

  // A call of that tenant begins. The only user there is has an empty name, and may have as many as
  // all.
  Verdict Begin(Connection connection, const std::string& tenant, TimePoint now);
  // One that was counted has ended.
  void End(Connection connection);
  // So has one, but it counts until then; each of these is not before the last one's.
  void EndAt(Connection connection, TimePoint then) { lingering_.emplace_back(then, connection); }
  // Forgets those whose time has come; Begin does so, too.
  void Settle(TimePoint now);

  // Where a connection comes from that has calls under way: any text. Whether it is a flood.
  bool ComesFrom(Connection connection, const std::string& peer);
  // Empty: not known.
  std::string PeerOf(Connection connection) const;

  // Calls refused over this connection since this was asked last. Those of a connection without a
  // call under way are forgotten.
  std::uint64_t TakeRefused(Connection connection);

  std::size_t under_way() const { return under_way_; }
  std::size_t under_way(const std::string& tenant) const;
  // Calls that were refused since the beginning; each for one limit.
  struct Refused {
    std::uint64_t of_connection = 0;
    std::uint64_t of_tenant = 0;
    std::uint64_t of_all = 0;
  };
  const Refused& refused_by_limit() const { return refused_; }
  std::uint64_t refused() const {
    return refused_.of_connection + refused_.of_tenant + refused_.of_all;
  }

 private:
  using ByTenant = std::map<std::string, std::size_t>;
  struct Calls {
    std::size_t count = 0;
    std::uint64_t refused = 0;    // not told yet
    std::uint64_t own_limit = 0;  // of all that were refused
    std::string peer;
    ByTenant::iterator tenant;
  };

  const Limits limits_;
  // Only those that have calls under way.
  std::map<Connection, Calls> by_connection_;
  ByTenant by_tenant_;
  std::deque<std::pair<TimePoint, Connection>> lingering_;
  std::size_t under_way_ = 0;
  Refused refused_;
};

}  // namespace muster::rendezvous
