// The ranks of a job, joined: the means by which they add numbers up and wait for one another.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "absl/status/statusor.h"

#include "trainer/core/environment.h"

namespace c10d {
class ProcessGroup;
}

namespace muster::trainer {

// What carries the tensors between ranks.
enum class Comm {
  kAuto,  // NCCL when LibTorch was built with it and a GPU is visible, else Gloo
  kGloo,  // TCP, tensors on the CPU
  kNccl,  // tensors on the GPU numbered by the local rank
};

// A c10d process group and the store it was made through. All ranks call its methods in the same
// order, from one thread each. A method throws what c10d throws when a peer is lost or the timeout
// passes; after that the group is of no more use, and its destructor may block: leave the process
// without it.
class ProcessGroup {
 public:
  // Meets the other ranks in the TCPStore at env.master_addr:env.master_port, which rank 0 serves
  // unless the launcher does, and connects to each. Blocks until all are there, at most for
  // `timeout`, which also bounds each later operation. A world of 1 uses no network.
  // kInvalidArgument when NCCL is asked for and cannot be had, kUnavailable when the ranks do not
  // come together.
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Join(const Environment& env, Comm comm,
                                                            std::chrono::milliseconds timeout);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // What the group runs on: kGloo or kNccl, and where the tensors given to it must be.
  Comm comm() const { return comm_; }
  const at::Device& device() const { return device_; }

  // The sums of `values` over all ranks, place by place; every rank gives as many.
  std::vector<double> Sum(const std::vector<double>& values);

  // Returns once every rank has called it.
  void Barrier();

  // The c10d group itself, for what is built on top of it. Lives as long as this object.
  const c10::intrusive_ptr<c10d::ProcessGroup>& group() const;

 private:
  struct Joined;  // the c10d objects, which only the .cc knows
  ProcessGroup(const Environment& env, Comm comm, const at::Device& device,
               std::unique_ptr<Joined> joined);

  const int rank_;
  const int size_;
  const Comm comm_;
  const at::Device device_;
  const std::unique_ptr<Joined> joined_;
};

}  // namespace muster::trainer
