// A delivery of workers' output over gRPC.
#pragma once

#include <cstdint>
#include <memory>

#include <boost/asio/io_context.hpp>

#include "rendezvous/client/log_delivery.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace muster::rendezvous {

// Over `channel`, which should not be the one over which the agent attends: what waits to be sent
// here must not hold up its beats. `io` must outlive it.
std::unique_ptr<LogDelivery> DeliverOverGrpc(boost::asio::io_context& io,
                                             std::shared_ptr<grpc::Channel> channel,
                                             std::uint64_t delivery,
                                             LogDelivery::Handlers handlers);

}  // namespace muster::rendezvous
