#include "rendezvous/fronts/call_places.h"

namespace muster::rendezvous {

std::shared_ptr<void> CallPlaces::Take(const std::string& tenant,
                                       const boost::asio::ip::address& host) {
  const auto count = counts_->try_emplace({tenant, host}).first;
  if (count->second >= most_) return nullptr;
  ++count->second;
  return {counts_.get(), [counts = counts_, count](void*) {
            if (--count->second == 0) counts->erase(count);
          }};
}

}  // namespace muster::rendezvous
