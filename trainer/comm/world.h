// All ranks of a job: their meeting, their hosts and their connections.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"

#include "trainer/comm/group.h"
#include "trainer/comm/host/operation_log.h"
#include "trainer/comm/host/transport.h"
#include "trainer/worker/launcher_link.h"

namespace muster::trainer {

// The ranks of a job, the store through which they have met, and the group of all ranks. After an
// operation of a group has thrown, its destructor may block: exit without destroying it. One
// thread, except where a method says otherwise.
class World {
 public:
  // Meets the other ranks at the TCPStore at env.master_addr:env.master_port, which rank 0 serves
  // unless the launcher does, and connects to each rank. Blocks until all have joined, for at most
  // `timeout`, which also limits each later operation. A world of 1 uses no network. With NCCL,
  // makes the rank's GPU current first, so that nothing is allocated on another rank's.
  // kInvalidArgument if NCCL is picked but not available, kUnavailable if the ranks cannot meet or
  // if shared memory is requested but not available. If another rank calls TellUnfit, returns that
  // rank's failure at once.
  static absl::StatusOr<std::unique_ptr<World>> Join(const Environment& env, Comm comm,
                                                     std::chrono::milliseconds timeout);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  // The transport (kGloo, kNccl or kShm), and the device of all tensors passed to groups.
  Comm comm() const { return choice_.comm; }
  const at::Device& device() const { return device_; }
  // The transport and the reason for it, for the start-up line: "shared memory: 4 ranks on one
  // host".
  const std::string& why_comm() const { return choice_.why; }
  // Which ranks share a host. Not determined with NCCL: each rank then counts as its own host.
  const HostLayout& layout() const { return layout_; }

  // The group of all ranks, with the ranks' own numbers. Valid as long as this object.
  Group& all() { return *all_; }

  // Creates a group of the ranks `members`, numbered by their positions in that list. Only its
  // members call this, with the same arguments, and meet under `name` in the store. A rank creates
  // one group after the other, so groups with common members must be created in the same order
  // everywhere, or the ranks deadlock. Groups without a common member may have the same name, but
  // messages could not tell them apart. Blocks until all members have arrived, for at most the
  // timeout. The group must not outlive this object. It uses NCCL if the world does; else shared
  // memory if each member shares its host with another member, unless --comm gloo is set.
  //
  // kInvalidArgument when `name` is empty, or when `members` does not list this rank and each rank
  // at most once. kUnavailable, with the name of the group and of the ranks that are missing, when
  // a member does not come in time. Throws nothing.
  absl::StatusOr<std::unique_ptr<Group>> MakeGroup(const std::string& name,
                                                   const std::vector<int>& members);

  // For error messages: the operation that each rank of this host is in (see
  // worker::ExplainFlights). Empty if no rank is in one, or if operations are not recorded.
  // Thread-safe.
  std::string WhereRanksAre() const;

 private:
  struct Joined;  // c10d's objects, defined in the .cc
  World(const Environment& env, std::chrono::milliseconds timeout, const at::Device& device,
        std::unique_ptr<Joined> joined);
  // Determines the ranks' hosts, picks the transport, and creates the group of all ranks.
  absl::Status Choose(Comm asked, bool nccl);
  // Starts recording operations in the memory shared by the ranks of this host, if there is any,
  // and in the launcher's, if it provides some.
  void MakeRecorder(absl::StatusOr<ShmSegment> segment, const HostLayout& layout);
  // The group of all ranks, as far as it is known so far.
  GroupFacts FactsOfAll();
  // Connects `members`, who meet at `meeting` in the store. Throws what c10d throws.
  std::unique_ptr<Group> Connect(const std::string& name, const std::vector<int>& members,
                                 const std::string& meeting);
  // Connects processes over Gloo; they meet at `meeting` in the store.
  MeetOverGloo MeetAt(const std::string& meeting);
  // Connects the members of a group for calls; they meet at `meeting` in the store. This is number
  // `rank` of `size`.
  MeetForCalls CallAt(const std::string& meeting, int rank, int size);

  const int rank_;
  const int size_;
  const std::chrono::milliseconds timeout_;
  const at::Device device_;
  std::optional<worker::FlightMemory> launchers_log_;  // moved to the recorder
  std::unique_ptr<FlightRecorder> recorder_;  // the groups' threads write to it until they end
  const std::unique_ptr<Joined> joined_;

  HostLayout layout_;
  std::vector<std::string> hosts_;  // by rank
  Comm asked_ = Comm::kAuto;
  std::string shm_trouble_;  // why the ranks cannot share memory; empty if they can
  CommChoice choice_;
  std::map<std::string, int> meetings_;  // how many groups with this name and these members there
                                         // have been
  std::unique_ptr<Group> all_;
};

}  // namespace muster::trainer
