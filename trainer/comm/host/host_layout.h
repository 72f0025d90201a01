// Which ranks share a host, for the purpose of shared memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::trainer {

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

}  // namespace muster::trainer
