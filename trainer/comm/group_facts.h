// A group's members, and the record of its operations.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include "absl/status/statusor.h"

#include "trainer/comm/host/operation_log.h"
#include "trainer/comm/host/transport.h"

namespace c10d {
class ProcessGroup;
}

namespace muster::trainer {

// Connects the `ranks` processes that meet under `name` in the group's part of the store; `place`
// is this process' index. Throws what c10d throws.
using MeetOverGloo = std::function<c10::intrusive_ptr<c10d::ProcessGroup>(const std::string& name,
                                                                          int place, int ranks)>;

class RemoteCalls;
struct GroupMeter;

// Makes the RemoteCalls of a group. `handler` is a RemoteCalls::Handler. Throws what c10d throws.
using MeetForCalls = std::function<std::unique_ptr<RemoteCalls>(
    std::shared_ptr<GroupMeter> meter,
    std::function<void(const std::string& what, std::vector<at::Tensor> arguments,
                       std::function<void(absl::StatusOr<std::vector<at::Tensor>> answer)> answer)>
        handler)>;

// A group's members, their hosts, and their connections.
struct GroupFacts {
  std::string name;          // for messages; empty for the group of all ranks
  std::vector<int> members;  // their ranks in the world
  int rank = 0;              // this process's index in `members`
  HostLayout layout;         // of the members, by their indices
  c10::Device device = c10::Device(c10::kCPU);
  Comm comm = Comm::kGloo;               // kGloo, kNccl or kShm
  std::chrono::milliseconds timeout{0};  // of each operation
  FlightRecorder* recorder = nullptr;    // null if operations are not recorded
  MeetOverGloo meet;                     // for the hosts' leaders
  MeetForCalls calls;
};

// The record of a group's operations, over all transports. Thread-safe.
struct GroupMeter {
  explicit GroupMeter(const GroupFacts& facts)
      : members(facts.members),
        flights(facts.recorder, facts.name),
        traffic(static_cast<int>(facts.members.size())) {}

  // This rank begins to send to member `other`, or to receive from it. `what` tells the message
  // from others between the two.
  FlightTicket EnterMessage(Operation operation, int other, const std::string& what,
                            std::size_t bytes);

  const std::vector<int> members;  // their ranks in the world
  GroupFlights flights;
  TrafficCount traffic;
};

// A c10d group that records and counts its operations.

// Forwards operations to `inner`, records them in `meter` as those of `part`, and counts their
// bytes for `use`; without a use, they are part of an operation that is counted elsewhere. The
// integers by which c10d's Reducer agrees on its buckets are not gradients, but Use::kOther. The
// meter's recorder must outlive the result.
//
// Only allreduce, allgather, _allgather_base, broadcast, _reduce_scatter_base, alltoall_base (used
// where there is no reduce-scatter), send and recv are supported.
c10::intrusive_ptr<c10d::ProcessGroup> Recorded(c10::intrusive_ptr<c10d::ProcessGroup> inner,
                                                std::shared_ptr<GroupMeter> meter, FlightPart part,
                                                std::optional<Use> use);

// Sums `tensor` (on the CPU or a GPU, contiguous) in place over the ranks of `group`. Gloo would
// sum halves in half precision, and some of its versions lack bfloat16, so both are sent as float.
void SumOver(c10d::ProcessGroup& group, at::Tensor& tensor);

// The message size for broadcasting rank 0's tensors.

// The size in bytes of one message of c10d::broadcast_coalesced. The same as in Python's
// DistributedDataParallel (torch/nn/parallel/distributed.py, broadcast_bucket_size).
inline constexpr std::size_t kBroadcastBucketBytes = std::size_t{250} << 20;

}  // namespace muster::trainer
