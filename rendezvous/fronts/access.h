// What a front asks before it does anything for a caller.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "rendezvous/fronts/driver.h"
#include "rendezvous/fronts/permissions.h"

namespace grpc {
class CallbackServerContext;
}  // namespace grpc

namespace muster::rendezvous {

// Asked on the loop, for each call, while the call is open: whose jobs it may touch, or why it may
// touch none (PermissionDenied, one sentence). The Driver lives as long as the front.
using Access = std::function<absl::StatusOr<Driver*>(Rpc, const grpc::CallbackServerContext&)>;

// Asked when a caller was answered Unavailable: calls `over` on the loop when he may ask again, as
// what kept his jobs is over. False: nothing is known to be in the way.
using AwaitAccess =
    std::function<bool(const grpc::CallbackServerContext&, std::function<void()> over)>;

}  // namespace muster::rendezvous
