// All ranks of a job: how they meet, where they are, and how they reach one another.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"

#include "trainer/comm/comm.h"
#include "trainer/comm/flight_recorder.h"
#include "trainer/comm/group.h"
#include "trainer/comm/host_layout.h"
#include "trainer/worker/environment.h"

namespace muster::trainer {

// The ranks of a job and the store through which they have met. It has the group of all ranks.
// After an operation of a group has thrown, its destructor may block: exit without destroying it.
// One thread, except where a method says otherwise.
class World {
 public:
  // Meets the other ranks at the TCPStore at env.master_addr:env.master_port, which rank 0 serves
  // unless the launcher does, and connects to each rank. Blocks until all have joined, for at most
  // `timeout`, which also limits each later operation. A world of 1 uses no network. With NCCL,
  // makes the rank's GPU current first, so that nothing is allocated on another rank's.
  // kInvalidArgument when NCCL is picked but not available, kUnavailable when the ranks cannot meet
  // or when shared memory is requested but not available. If another rank calls TellUnfit, returns
  // that rank's failure at once.
  static absl::StatusOr<std::unique_ptr<World>> Join(const Environment& env, Comm comm,
                                                     std::chrono::milliseconds timeout);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  // The transport (kGloo, kNccl or kShm), and the device on which tensors passed to groups must be.
  Comm comm() const { return choice_.comm; }
  const at::Device& device() const { return device_; }
  // The transport and the reason for it, for the start-up line: "shared memory: 4 ranks on one
  // host".
  const std::string& why_comm() const { return choice_.why; }
  // Which ranks share a host. Not determined with NCCL: every rank then has a host of its own.
  const HostLayout& layout() const { return layout_; }

  // The group of all ranks, in which each has its own number. Valid as long as this object.
  Group& all() { return *all_; }

  // Makes a group of the ranks `members`, in which they are numbered by their places in that list.
  // Its members alone call this, with the same arguments, and meet under `name` in the store. A
  // rank makes one group after the other, so all must follow one order of those groups that have
  // members in common, or they wait for one another in a circle. Groups without a common member may
  // have the same name, but messages could not tell them apart. Blocks until all members have come,
  // for at most the timeout. The group must not outlive this object. It has NCCL where the world
  // has; else shared memory when each member shares its host with another member, unless --comm
  // gloo was asked for.
  //
  // kInvalidArgument when `name` is empty, or when `members` does not list this rank and each rank
  // at most once. kUnavailable, with the name of the group and of the ranks that are missing, when
  // a member does not come in time. Throws nothing.
  absl::StatusOr<std::unique_ptr<Group>> MakeGroup(const std::string& name,
                                                   const std::vector<int>& members);

  // For error messages: in which operation each rank of this host is (see worker::ExplainFlights).
  // Empty when no rank is in one, and when they are not recorded. Thread-safe.
  std::string WhereRanksAre() const;

 private:
  struct Joined;  // the c10d objects, defined in the .cc
  World(const Environment& env, std::chrono::milliseconds timeout, const at::Device& device,
        std::unique_ptr<Joined> joined);
  // Determines the layout of the ranks, picks the transport, and makes the group of all.
  absl::Status Choose(Comm asked, bool nccl);
  // Records operations in the memory that the ranks of this host share, if they do, and for the
  // launcher, if it wants that.
  void MakeRecorder(absl::StatusOr<ShmSegment> segment, const HostLayout& layout);
  // The group of all ranks as far as it is known.
  GroupFacts FactsOfAll();
  // Connects `members`, who meet at `meeting` in the store. Throws what c10d throws.
  std::unique_ptr<Group> Connect(const std::string& name, const std::vector<int>& members,
                                 const std::string& meeting);
  // Connects processes over Gloo that meet at `meeting` in the store.
  MeetOverGloo MeetAt(const std::string& meeting);
  // Makes it possible for the members of a group that meet there to call one another; of `size`
  // this is number `rank`.
  MeetForCalls CallAt(const std::string& meeting, int rank, int size);

  const int rank_;
  const int size_;
  const std::chrono::milliseconds timeout_;
  const at::Device device_;
  std::optional<worker::FlightMemory> launchers_log_;  // until there is a recorder
  std::unique_ptr<FlightRecorder> recorder_;  // the groups' threads write there until they end
  const std::unique_ptr<Joined> joined_;

  HostLayout layout_;
  std::vector<std::string> hosts_;  // of the ranks
  Comm asked_ = Comm::kAuto;
  std::string shm_trouble_;  // why the ranks cannot share memory; empty when they can
  CommChoice choice_;
  std::map<std::string, int> meetings_;  // how often there was one of that name and members
  std::unique_ptr<Group> all_;
};

}  // namespace muster::trainer
