// The ranks of a job, joined: the means by which they add numbers up and wait for one another.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "absl/status/statusor.h"

#include "trainer/comm/comm.h"
#include "trainer/comm/host_layout.h"
#include "trainer/worker/environment.h"

namespace c10d {
class ProcessGroup;
}

namespace muster::trainer {

// A c10d process group and the store it was made through. All ranks call its methods in the same
// order, from one thread each. A method throws what c10d throws when a peer is lost or the timeout
// passes; after that the group is of no more use, and its destructor may block: leave the process
// without it.
class ProcessGroup {
 public:
  // Meets the other ranks in the TCPStore at env.master_addr:env.master_port, which rank 0 serves
  // unless the launcher does, and connects to each. Blocks until all are there, at most for
  // `timeout`, which also bounds each later operation. A world of 1 uses no network. With NCCL, the
  // rank's GPU is made the current one first, so that nothing is put on another rank's.
  // kInvalidArgument when NCCL is asked for and cannot be had, kUnavailable when the ranks do not
  // come together or cannot share memory that was asked for.
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Join(const Environment& env, Comm comm,
                                                            std::chrono::milliseconds timeout);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  // What the group runs on: kGloo, kNccl or kShm, and where the tensors given to it must be.
  Comm comm() const { return choice_.comm; }
  const at::Device& device() const { return device_; }
  // For the start-up line: what was picked and why, "shared memory: 4 ranks on one host".
  const std::string& why_comm() const { return choice_.why; }
  // Which ranks share a host. With NCCL nobody asks: a host for each rank.
  const HostLayout& layout() const { return layout_; }

  // The sums of `values` over all ranks, place by place; every rank gives as many.
  std::vector<double> Sum(const std::vector<double>& values);

  // The string that each rank gives, by rank, cut at `most` bytes (the same on all ranks).
  std::vector<std::string> Gather(const std::string& mine, std::size_t most);

  // Returns once every rank has called it.
  void Barrier();

  // The c10d group itself, for what is built on top of it: Gloo's with kGloo and kShm. Lives as
  // long as this object.
  const c10::intrusive_ptr<c10d::ProcessGroup>& group() const;

  // A Gloo group of `ranks` alone, which meet under `name` (another one each time) in the store.
  // Only they call this. `place` is this rank's among them. Throws what c10d throws.
  c10::intrusive_ptr<c10d::ProcessGroup> MakeGlooGroup(const std::string& name, int place,
                                                       int ranks);

 private:
  struct Joined;  // the c10d objects, which only the .cc knows
  ProcessGroup(const Environment& env, std::chrono::milliseconds timeout, const at::Device& device,
               std::unique_ptr<Joined> joined);
  // Finds out where the ranks are, and what suits them.
  absl::StatusOr<CommChoice> Choose(Comm asked, bool nccl);

  const int rank_;
  const int size_;
  const std::chrono::milliseconds timeout_;
  const at::Device device_;
  const std::unique_ptr<Joined> joined_;

  HostLayout layout_;
  CommChoice choice_;
};

}  // namespace muster::trainer
