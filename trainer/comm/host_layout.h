// Which ranks share a host, as far as shared memory is concerned.
#pragma once

#include <string>
#include <vector>

namespace muster::trainer {

// Names what processes must have in common to map the same memory and to see one another's pids:
// the boot, /dev/shm, and the pid and network namespaces. Two containers of one machine are two
// hosts, unless they share all of these. Equal on two processes exactly when they share a host; not
// meant to be read. At most kHostIdBytes long.
std::string HostId();
inline constexpr std::size_t kHostIdBytes = 160;

// Where the ranks are, as one of them sees it. Hosts are numbered by their lowest rank, which leads
// the host's ranks.
struct HostLayout {
  int world_size = 0;
  int hosts = 0;
  int host = 0;                  // this rank's
  std::vector<int> local_ranks;  // the ranks on this rank's host, ascending; [0] is its leader
  int local_index = 0;           // this rank's place among them
  std::vector<int> leaders;      // one for each host
  int smallest = 0;              // ranks on the host that has fewest

  bool leads() const { return local_index == 0; }
};

// `host_of_rank[r]` is rank r's HostId().
HostLayout LayOutHosts(const std::vector<std::string>& host_of_rank, int rank);

}  // namespace muster::trainer
