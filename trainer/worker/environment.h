// What the launcher tells a worker: the environment torchrun documents, read once and checked.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace muster::trainer {

// One worker's place in the job. Without a launcher it is the only one of a world of 1.
struct Environment {
  int rank = 0;
  int world_size = 1;
  // The place among the workers of this node, and how many they are.
  int local_rank = 0;
  int local_world_size = 1;
  // Where the ranks meet. Both are set whenever world_size is more than 1.
  std::string master_addr;
  std::uint16_t master_port = 0;
  // Whether the launcher serves the store at master_addr:master_port; if not, rank 0 does.
  bool agent_store = false;
  // How often the job was restarted, and its run id; the run id is empty without a launcher.
  int restart_count = 0;
  std::string run_id;
  // Where the launcher hears that this rank makes progress; empty when it does not listen.
  std::string beat_socket;
  // The network interface the user wants Gloo to use (GLOO_SOCKET_IFNAME); empty: the one that
  // leads to master_addr.
  std::string gloo_interface;

  bool operator==(const Environment&) const = default;
};

// How a variable is looked up: its value, or nullopt when it is not set.
using Lookup = std::function<std::optional<std::string>(const char* name)>;

// The process's own environment.
std::optional<std::string> LookupInProcess(const char* name);

// Reads the environment through `lookup`. An empty variable counts as not set. A value that is no
// number, is out of its range, or lacks the others it needs gives kInvalidArgument and one sentence
// that names it.
absl::StatusOr<Environment> ReadEnvironment(const Lookup& lookup);

}  // namespace muster::trainer
