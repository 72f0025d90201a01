// Where the ranks are, by host, and what carries tensors between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::trainer {

// Which ranks share a host.

// An ID of everything that processes must have in common to map the same memory and see one
// another's pids: the boot, /dev/shm, the pid and network namespaces, and the user. Two containers
// on one machine count as two hosts unless they share all of these. Two processes share a host
// exactly when their IDs are equal. An opaque string of at most kHostIdBytes.
std::string HostId();
inline constexpr std::size_t kHostIdBytes = 160;

// How the ranks are distributed over hosts, from the point of view of one rank. Hosts are numbered
// in the order of their lowest ranks. The lowest rank of a host is its leader.
struct HostLayout {
  int world_size = 0;
  int hosts = 0;
  int host = 0;                  // this rank's
  std::vector<int> local_ranks;  // the ranks on this host, ascending; [0] is the leader
  int local_index = 0;           // this rank's index in local_ranks
  std::vector<int> leaders;      // one for each host
  int smallest = 0;              // the number of ranks on the host with the fewest

  bool leads() const { return local_index == 0; }
};

// Computes the layout for `rank`. `host_of_rank[r]` is rank r's HostId().
HostLayout LayOutHosts(const std::vector<std::string>& host_of_rank, int rank);

// Finds the local address from which another machine can be reached.

// The local IP address from which the kernel would send to `host`:`port`; 127.0.0.1 for a loopback
// address. Sends nothing, but resolving a name may block. kUnavailable when `host` cannot be
// resolved or there is no route to it.
absl::StatusOr<std::string> LocalAddressTowards(const std::string& host, std::uint16_t port);

// The name of the network interface with the local IP address `address`; empty if there is none.
std::string InterfaceOf(const std::string& address);

// The sockets at which this process is reachable.

// The process' listening TCP sockets, as file descriptors in ascending order. Sockets that another
// thread opens or closes meanwhile may or may not be included.
std::vector<int> ListeningSockets();

// Stops listening at `socket` but leaves it open: its owner finds that nothing can be accepted any
// more. Established connections are not affected.
void StopListening(int socket);

// The transport for tensors between ranks, and how it is picked.

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
