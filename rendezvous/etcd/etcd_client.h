// An etcd over gRPC.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "rendezvous/etcd/etcd.h"

namespace muster::rendezvous::etcd {

// Asks one member after the other, beginning with the one that answered last. `trouble` hears why
// there is no answer, once a minute until there is one again. `io` must outlive it.
std::unique_ptr<Etcd> ConnectToEtcd(boost::asio::io_context& io, EtcdOptions options,
                                    std::function<void(const std::string& why)> trouble);

}  // namespace muster::rendezvous::etcd
