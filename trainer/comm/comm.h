// What carries tensors between ranks, and how it is picked.
#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "trainer/comm/host_layout.h"

namespace muster::trainer {

enum class Comm {
  kAuto,  // NCCL on GPUs, shared memory where ranks share a host, else Gloo: see PickComm()
  kGloo,  // TCP, tensors on the CPU
  kNccl,  // tensors on the GPU numbered by the local rank
  kShm,  // gradients through shared memory inside a host, through Gloo between hosts; the rest Gloo
};

// "auto", "gloo", "nccl", "shm".
const char* CommName(Comm comm);

// What was picked, and a phrase for the start-up line that says why:
// "NCCL: 2 GPUs are visible", "shared memory: 4 ranks on one host".
struct CommChoice {
  Comm comm = Comm::kGloo;  // never kAuto
  std::string why;
};

// What the GPUs of this rank's host allow.
struct GpuFacts {
  bool has_nccl = false;  // whether LibTorch was built with it
  int visible = 0;
  int local_rank = 0;
};

// The first half, before the ranks have met: whether it is NCCL. kAuto and kShm mean CPU tensors
// here when no GPU is visible. kInvalidArgument with a sentence when NCCL is asked for (or picked)
// and cannot be had.
absl::StatusOr<bool> PicksNccl(Comm asked, const GpuFacts& gpus);

// The second half, once they have: `asked` is not kNccl, `layout` is where the ranks are, and
// `shm_trouble` is a sentence about the first rank that cannot use shared memory, empty when all
// can. kAuto takes shared memory when all ranks are on one host, or on several with more than one
// each, and there is no trouble. kUnavailable when shared memory was asked for and is not to be
// had.
absl::StatusOr<CommChoice> PickComm(Comm asked, const HostLayout& layout,
                                    const std::string& shm_trouble);

}  // namespace muster::trainer
