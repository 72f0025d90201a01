// A group of ranks, with its collective operations.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "trainer/comm/group_facts.h"
#include "trainer/comm/host/operation_log.h"
#include "trainer/comm/host/transport.h"
#include "trainer/comm/remote_calls.h"

namespace c10d {
class ProcessGroup;
class Work;
}  // namespace c10d

namespace muster::trainer {

class AllReducer;

// An operation in progress. wait() returns when it is done, and throws if it has failed; do not
// touch its tensors until then. (It keeps them alive itself.)
using PendingWork = c10::intrusive_ptr<c10d::Work>;

// An all-gather in progress: each member's tensor, by index, once `work` is done.
struct PendingGather {
  PendingWork work;
  std::vector<at::Tensor> tensors;
};

// Ranks that exchange tensors; also counts what they send. The group of all ranks is part of the
// World; others are made with World::MakeGroup().
//
// All members must call its operations in the same order, with tensors of the same shapes and types
// that are contiguous and on the group's device; messages involve only their two members. Call them
// from one thread each; only with Comm::kShm may AllReduce() run on a second one next to the
// others. They block until done, except those named Async. Operations throw what c10d throws if a
// peer is lost or the timeout expires. After that the group must not be used, and its destructor
// may block: exit without destroying it.
//
// With Comm::kShm, AllReduce() of real numbers goes through shared memory within a host and over
// Gloo between hosts. So do ReduceScatter() of real numbers and AllGather(), its two halves, where
// all members are on one host; call these three from the same thread then. Everything else uses
// Gloo. `use` is the category under which an operation's bytes are counted.
class Group {
 public:
  // For World. `ranks` connects the members.
  Group(GroupFacts facts, const c10::intrusive_ptr<c10d::ProcessGroup>& ranks);
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
  // The transport (kGloo, kNccl or kShm), and the device of all tensors passed to the group.
  Comm comm() const { return facts_.comm; }
  const at::Device& device() const { return facts_.device; }
  // Which members share a host, by their indices. Not determined with NCCL: each member then counts
  // as its own host.
  const HostLayout& layout() const { return facts_.layout; }
  // Whether all members are on one host and use shared memory.
  bool SharesMemory() const;

  // Replaces `tensor` with `scale` times its sum over the members. Half and bfloat16 on the CPU are
  // summed in float. Every member gets the same bits. If a peer on this host is gone, throws
  // std::runtime_error that names its rank and pid.
  void AllReduce(at::Tensor& tensor, Use use, double scale = 1.0,
                 Waiting waiting = Waiting::kSleep);
  // Prepares AllReduce() for tensors of up to `largest_bytes`, which with kShm needs memory; larger
  // ones pass through it in pieces. Otherwise the first AllReduce() does so, and must then not run
  // next to other operations. Throws std::runtime_error with one sentence, on every member, if one
  // of them cannot get the memory.
  void PrepareAllReduce(std::size_t largest_bytes, const ShmOptions& options = {});
  // The sum over the members, always by c10d; not for bfloat16 on the CPU.
  PendingWork AllReduceAsync(const at::Tensor& tensor, Use use);

  // The sum over the members of each one's `whole`, of which this one gets its size()-th along
  // dimension 0, which size() must divide. Half and bfloat16 on the CPU are summed in float.
  //
  // Gloo has no reduce-scatter before LibTorch 2: members exchange their parts (alltoall) and each
  // adds up its own, in the order of the members. Of the available methods this sends least,
  // (N-1)K/N, and is faster than an all-reduce that discards the rest: by group_program's bench, 2
  // processes on two cores, 0.23 against 0.39 ms for 64 KB, 0.49 against 0.85 for 1 MB, 8.4 against
  // 17 for 16 MB. Through shared memory 0.09, 0.37 and 3.1 ms.
  at::Tensor ReduceScatter(const at::Tensor& whole, Use use);

  // The members' `mine`, one after the other along dimension 0.
  at::Tensor AllGather(const at::Tensor& mine, Use use);
  PendingGather AllGatherAsync(const at::Tensor& mine, Use use);
  // The same into `whole`, which is as large as all of them, contiguous, and may already contain
  // `mine` in its place. Null if it is done at once, as in shared memory.
  PendingWork AllGatherInto(at::Tensor& whole, const at::Tensor& mine, Use use);

  // Replaces each `tensor` with member `root`'s. Several tensors are sent together.
  void Broadcast(const at::Tensor& tensor, int root, Use use);
  void Broadcast(const std::vector<at::Tensor>& tensors, int root, Use use);

  // Prepares messages of up to about half a megabyte to go through shared memory, if all members
  // are on one host, use it, and are few; no effect otherwise. Without this call, all go over Gloo
  // or NCCL. Every member calls it, and sends and receives from a single thread from then on. Those
  // messages advance only while both sides are in some call of Send, Receive or a wait for one.
  // Throws std::runtime_error with one sentence, on every member, if one of them cannot get the
  // memory.
  void PrepareMessages();
  // Sends `tensor` to member `to`, which must receive one of the same size and type with the same
  // `tag`. Of messages between two members with one tag, the first sent is the first received; NCCL
  // has no tags. Nothing is sent before both sides have begun, so two members that send to each
  // other must begin receiving before they wait for their own send.
  void Send(const at::Tensor& tensor, int to, int tag, Use use);
  void Receive(const at::Tensor& tensor, int from, int tag, Use use);
  PendingWork SendAsync(const at::Tensor& tensor, int to, int tag, Use use);
  PendingWork ReceiveAsync(const at::Tensor& tensor, int from, int tag, Use use);

  // Connects all members for calls, which `handler` answers here. Every member calls it; blocks
  // until all have. The result must not outlive this group. Not available with NCCL.
  std::unique_ptr<RemoteCalls> MakeRemoteCalls(RemoteCalls::Handler handler);

  // The element-wise sums of `values` over the members. Each must pass the same number of values.
  std::vector<double> Sum(const std::vector<double>& values);
  // Replaces `number`, a tensor on this group's device, by its sum. Does not wait for a GPU.
  void Sum(at::Tensor& number);

  // Each member's `mine`, by index. Each is cut to `most` bytes, which must be the same for all,
  // and at the first zero byte.
  std::vector<std::string> Gather(const std::string& mine, std::size_t most);

  // Returns once every member has called it.
  void Barrier();

  // What this rank has sent for `use` in this group, by any transport. Bytes are counted in shared
  // memory on one host, and for messages; Gloo and NCCL do not count. Thread-safe.
  Traffic traffic(Use use) const;

  // Records the operations of this rank; null if its host cannot share memory and its launcher has
  // provided none.
  FlightRecorder* recorder() { return facts_.recorder; }

  // The underlying c10d group, for code built on top of it, which counts under `use`. With kGloo
  // and kShm it is a Gloo group. Valid as long as this object.
  const c10::intrusive_ptr<c10d::ProcessGroup>& Backend(Use use) const;

 private:
  struct Joined;  // the c10d groups, defined in the .cc
  // Ready for tensors of `bytes`; prepares it first if needed.
  AllReducer& Reducer(std::size_t bytes);

  const GroupFacts facts_;
  const std::unique_ptr<Joined> joined_;
};

}  // namespace muster::trainer
