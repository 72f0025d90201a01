// What a caller may do whose call was let in.
#pragma once

#include <memory>

#include <boost/asio/ip/address.hpp>

#include "rendezvous/fronts/driver.h"

namespace muster::rendezvous {

struct Admission {
  Driver* driver = nullptr;       // of the jobs that he may touch
  boost::asio::ip::address host;  // where he is (net/host_address.h, HostLine)
  // Held while the call is under way (CallPlaces).
  std::shared_ptr<void> place;
};

}  // namespace muster::rendezvous
