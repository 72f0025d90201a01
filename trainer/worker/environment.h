// The environment variables that a launcher sets, as torchrun documents them, read once and
// checked.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace muster::trainer {

// One worker's place in the job. Without a launcher the world has size 1.
struct Environment {
  int rank = 0;
  int world_size = 1;
  // This worker's index on its node, and the number of workers on the node.
  int local_rank = 0;
  int local_world_size = 1;
  // Whether local_rank was set: a world may be of one host's ranks or of many.
  bool has_local_rank = false;
  // Where the ranks meet. Always set when world_size is above 1.
  std::string master_addr;
  std::uint16_t master_port = 0;
  // Whether the launcher serves the store at master_addr:master_port; otherwise rank 0 does.
  bool agent_store = false;
  // How often the job was restarted, and its run ID, which is empty without a launcher. Muster also
  // counts rounds: a new one begins without a restart when a node is lost or joins.
  int restart_count = 0;
  int round = 0;
  std::string run_id;
  // The socket on which the launcher receives beats (see beat.h); empty when there is none.
  std::string beat_socket;
  // Where the launcher reads the last operations of this rank: a file and the place in it (see
  // worker/flight/flight_memory.h); empty when it does not.
  std::string flight_log;
  std::int64_t flight_offset = 0;
  // The network interface for Gloo, or several with commas between them (GLOO_SOCKET_IFNAME);
  // empty: the one that leads to master_addr.
  std::string gloo_interface;

  // Whether workers of this job have run before these.
  bool restarted() const { return restart_count > 0 || round > 0; }

  bool operator==(const Environment&) const = default;
};

// Looks up a variable: its value, or nullopt when it is not set.
using Lookup = std::function<std::optional<std::string>(const char* name)>;

// Looks `name` up in this process's environment.
std::optional<std::string> LookupInProcess(const char* name);

// Reads the environment through `lookup`. An empty variable counts as not set. kInvalidArgument and
// one sentence that names the variable when a value is not a number, is out of range, or lacks
// another variable that it requires.
absl::StatusOr<Environment> ReadEnvironment(const Lookup& lookup);

}  // namespace muster::trainer
