// A group of ranks, with its collective operations.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "trainer/comm/comm.h"
#include "trainer/comm/flight_recorder.h"
#include "trainer/comm/host_layout.h"

namespace c10d {
class ProcessGroup;
}

namespace muster::trainer {

// Connects the `ranks` processes that meet under `name` in the store; `place` is this one's index
// among them. Throws what c10d throws.
using MeetOverGloo = std::function<c10::intrusive_ptr<c10d::ProcessGroup>(const std::string& name,
                                                                          int place, int ranks)>;

// Who is in a group, where they are, and how they reach one another.
struct GroupFacts {
  std::string name;          // for messages; empty for the group of all ranks
  std::vector<int> members;  // their ranks in the world
  int rank = 0;              // this process's index in `members`
  HostLayout layout;         // of the members, by their indices
  at::Device device = at::kCPU;
  Comm comm = Comm::kGloo;               // kGloo, kNccl or kShm
  std::chrono::milliseconds timeout{0};  // of each operation
  FlightRecorder* recorder = nullptr;    // null where operations are not recorded
  MeetOverGloo meet;                     // for the hosts' leaders
};

// Ranks that exchange tensors, over c10d and, with Comm::kShm, through shared memory. The group of
// all ranks is part of the World; others are made with World::MakeGroup(). All members must call
// its methods in the same order, from one thread each. Methods throw what c10d throws when a peer
// is lost or the timeout expires. After that the group cannot be used, and its destructor may
// block: exit without destroying it.
class Group {
 public:
  // For World. `ranks` connects the members.
  Group(GroupFacts facts, c10::intrusive_ptr<c10d::ProcessGroup> ranks);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // Empty for the group of all ranks.
  const std::string& name() const { return facts_.name; }
  // This process's index among the members, and their number.
  int rank() const { return facts_.rank; }
  int size() const { return static_cast<int>(facts_.members.size()); }
  // The members' ranks in the world, by their indices here.
  const std::vector<int>& members() const { return facts_.members; }
  std::chrono::milliseconds timeout() const { return facts_.timeout; }
  // The transport (kGloo, kNccl or kShm), and the device on which tensors passed to the group must
  // be.
  Comm comm() const { return facts_.comm; }
  const at::Device& device() const { return facts_.device; }
  // Which members share a host, by their indices. Not determined with NCCL: each then has a host of
  // its own.
  const HostLayout& layout() const { return facts_.layout; }

  // The element-wise sums of `values` over the members. Each must pass the same number of values.
  std::vector<double> Sum(const std::vector<double>& values);

  // Each member's `mine`, by index. Each is cut at `most` bytes, which must be the same for all,
  // and at the first zero byte.
  std::vector<std::string> Gather(const std::string& mine, std::size_t most);

  // Returns once every member has called it.
  void Barrier();

  // Records the operations of this rank; null with NCCL, and when a host cannot share memory.
  FlightRecorder* recorder() { return facts_.recorder; }

  // The underlying c10d group, for code built on top of it. It uses Gloo with kGloo and kShm. Valid
  // as long as this object.
  const c10::intrusive_ptr<c10d::ProcessGroup>& group() const;

  // Creates a Gloo group of `ranks` members, which meet in the store under `name`; use a new name
  // for each group. Only the members call this. `place` is this rank's index among them. Throws
  // what c10d throws.
  c10::intrusive_ptr<c10d::ProcessGroup> MakeGlooGroup(const std::string& name, int place,
                                                       int ranks);

 private:
  struct Joined;  // the c10d group, defined in the .cc
  const GroupFacts facts_;
  const std::unique_ptr<Joined> joined_;
};

}  // namespace muster::trainer
