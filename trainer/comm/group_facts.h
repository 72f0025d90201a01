// Who is in a group of ranks, and what is kept of its operations.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include "absl/status/statusor.h"

#include "trainer/comm/comm.h"
#include "trainer/comm/flight_recorder.h"
#include "trainer/comm/host_layout.h"
#include "trainer/comm/traffic.h"

namespace c10d {
class ProcessGroup;
}

namespace muster::trainer {

// Connects the `ranks` processes that meet under `name` in the group's part of the store; `place`
// is this one's index among them. Throws what c10d throws.
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

// Who is in a group, where they are, and how they reach one another.
struct GroupFacts {
  std::string name;          // for messages; empty for the group of all ranks
  std::vector<int> members;  // their ranks in the world
  int rank = 0;              // this process's index in `members`
  HostLayout layout;         // of the members, by their indices
  c10::Device device = c10::Device(c10::kCPU);
  Comm comm = Comm::kGloo;               // kGloo, kNccl or kShm
  std::chrono::milliseconds timeout{0};  // of each operation
  FlightRecorder* recorder = nullptr;    // null where operations are not recorded
  MeetOverGloo meet;                     // for the hosts' leaders
  MeetForCalls calls;
};

// What is kept of a group's operations, by whichever way they go. Thread-safe.
struct GroupMeter {
  explicit GroupMeter(const GroupFacts& facts)
      : members(facts.members),
        flights(facts.recorder, facts.name),
        traffic(static_cast<int>(facts.members.size())) {}

  const std::vector<int> members;  // their ranks in the world
  GroupFlights flights;
  TrafficCount traffic;
};

}  // namespace muster::trainer
