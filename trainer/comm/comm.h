// The transport for tensors between ranks, and how it is picked.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "trainer/comm/host_layout.h"

namespace muster::trainer {

enum class Comm {
  kAuto,  // NCCL on GPUs, shared memory if ranks share a host, else Gloo: see PickComm()
  kGloo,  // TCP, tensors on the CPU
  kNccl,  // tensors on the GPU whose index is the local rank
  kShm,   // gradients: shared memory within a host, Gloo between hosts; all else: Gloo
};

// "auto", "gloo", "nccl", "shm".
const char* CommName(Comm comm);

// The transport picked, and the reason for the start-up line: "NCCL: 2 GPUs are visible", "shared
// memory: 4 ranks on one host".
struct CommChoice {
  Comm comm = Comm::kGloo;  // never kAuto
  std::string why;
};

// What is known about GPUs on this rank's host, and about this program.
struct GpuFacts {
  bool has_nccl = false;  // whether LibTorch was built with NCCL
  bool has_gloo = true;   // whether Gloo is there, for ranks without NCCL
  int visible = 0;
  std::optional<int> local_rank = 0;  // nullopt when nobody has said which of several this one is
};

// The first half of the choice, before the ranks have met: why this one does not use NCCL, as a
// phrase ("no GPU is visible"), or empty when it does. kGloo and kShm never use it; kAuto does if
// LibTorch has NCCL and a GPU is visible. kInvalidArgument with one sentence when NCCL is requested
// or picked, but LibTorch lacks it or there is no GPU for the local rank, or when NCCL is not used
// and there is no Gloo.
absl::StatusOr<std::string> WhyNotNccl(Comm asked, const GpuFacts& gpus);

// The second half, once the ranks have met. `asked` is not kNccl, `layout` says where the ranks
// are, and `shm_trouble` is a sentence about the first rank that cannot use shared memory, empty
// when all can. kAuto picks shared memory when there are several ranks, every host has more than
// one, and there is no trouble. kUnavailable when shared memory is requested but not available.
absl::StatusOr<CommChoice> PickComm(Comm asked, const HostLayout& layout,
                                    const std::string& shm_trouble);

}  // namespace muster::trainer
