// How many calls are under way: over each connection, of each tenant, and in all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace muster::rendezvous {

// Has no thread of its own: whoever counts sees to that.
class CallCounts {
 public:
  // A connection's own number, which no other ever has.
  using Connection = std::uint64_t;

  struct Limits {
    std::size_t of_connection = 0;
    std::size_t of_tenant = 0;
    std::size_t of_all = 0;
  };

  explicit CallCounts(const Limits& limits) : limits_(limits) {}

  // A call of that tenant begins. False: it is one too many, and is not counted but as refused. The
  // only user there is has an empty name, and may have as many as all.
  bool Begin(Connection connection, const std::string& tenant);
  // A call that was let in and has ended here counts again, whatever the limits say.
  void Resume(Connection connection, const std::string& tenant);
  // One that was counted has ended.
  void End(Connection connection);

  // Calls refused over this connection since this was asked last. Those of a connection without a
  // call under way are forgotten.
  std::uint64_t TakeRefused(Connection connection);

  std::size_t under_way() const { return under_way_; }
  std::size_t under_way(const std::string& tenant) const;
  // Since the beginning.
  std::uint64_t refused() const { return refused_; }

 private:
  using ByTenant = std::map<std::string, std::size_t>;
  struct Calls {
    std::size_t count = 0;
    std::uint64_t refused = 0;
    ByTenant::iterator tenant;
  };

  void Count(Connection connection, const std::string& tenant);

  const Limits limits_;
  // Only those that have calls under way.
  std::map<Connection, Calls> by_connection_;
  ByTenant by_tenant_;
  std::size_t under_way_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace muster::rendezvous
