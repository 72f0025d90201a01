// How many calls each host of a tenant may have under way.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/ip/address.hpp>

namespace muster::rendezvous {

// Beside the limits of net/call_gate.h, which knows no addresses: so that a single host cannot have
// all the calls that there may be. Lives on the loop's thread.
class CallPlaces {
 public:
  explicit CallPlaces(std::size_t most_of_host) : most_(most_of_host) {}

  // A place for a call of that host of the tenant's, until the last copy of the result is gone,
  // which may be after this object. Null: it has as many as it may.
  std::shared_ptr<void> Take(const std::string& tenant, const boost::asio::ip::address& host);

 private:
  using Counts = std::map<std::pair<std::string, boost::asio::ip::address>, std::size_t>;

  const std::size_t most_;
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

}  // namespace muster::rendezvous
