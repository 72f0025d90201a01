// The transport for tensors between ranks, and how it is picked.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "trainer/comm/host/host_layout.h"

namespace muster::trainer {

enum class Comm {
  kAuto,  // NCCL on GPUs, shared memory if ranks share a host, else Gloo: see PickComm()
  kGloo,  // TCP, tensors on the CPU
  kNccl,  // tensors on the GPU whose index is the local rank
  kShm,   // gradients: shared memory within a host, Gloo between hosts; everything else: Gloo
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
  bool has_gloo = true;   // whether Gloo is available, for ranks without NCCL
  int visible = 0;
  std::optional<int> local_rank = 0;  // nullopt if there are several and this one's index is
                                      // unknown
};

// The first half of the choice, before the ranks have met: why this one does not use NCCL, as a
// phrase ("no GPU is visible"), or empty when it does. kGloo and kShm never use it; kAuto does if
// LibTorch has NCCL and a GPU is visible. kInvalidArgument with one sentence if NCCL is requested
// or picked, but LibTorch lacks it or there is no GPU for the local rank, or if NCCL is not used
// and there is no Gloo.
absl::StatusOr<std::string> WhyNotNccl(Comm asked, const GpuFacts& gpus);

// The second half, once the ranks have met. `asked` is not kNccl, `layout` has the ranks' hosts,
// and `shm_trouble` is a sentence about the first rank that cannot use shared memory, empty if all
// can. kAuto picks shared memory if there are several ranks, every host has more than one, and
// there is no trouble. kUnavailable if shared memory is requested but not available.
absl::StatusOr<CommChoice> PickComm(Comm asked, const HostLayout& layout,
                                    const std::string& shm_trouble);

// Options for shared memory between ranks.

struct ShmOptions {
  // How much of a rank's tensor is in the segment at a time. Smaller tensors use a smaller segment;
  // larger ones pass through it piece by piece. Pieces are faster if they fit in the CPU caches.
  std::size_t piece_bytes = std::size_t{1} << 20;
};

// How ranks on one host wait for one another.

enum class Waiting {
  // Sleep almost immediately, so that another thread of this process can use the CPU.
  kSleep,
  // Spin for about as long as a sleep and wake-up would take, and only then sleep. For a thread
  // whose process has nothing else to do meanwhile.
  kSpin,
};

}  // namespace muster::trainer
