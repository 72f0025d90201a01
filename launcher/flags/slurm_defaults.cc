#include "launcher/flags/slurm_defaults.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "launcher/flags/slurm_place.h"

namespace muster::launcher {
namespace {

// Steps of the same hosts must not meet at one port. Below the ports that the kernel gives to
// whoever does not ask for one, and above those that services commonly have.
constexpr std::uint16_t kFirstPort = 20'000;
constexpr std::uint32_t kPorts = 10'000;

std::uint16_t PortOf(const std::string& name) {
  // FNV-1a.
  std::uint32_t hash = 2'166'136'261;
  for (const unsigned char c : name) hash = (hash ^ c) * 16'777'619;
  return static_cast<std::uint16_t>(kFirstPort + hash % kPorts);
}

// MIN:MAX says how many of Slurm's nodes the job needs, and leaves open where they meet.
bool IsRange(const RunFlags& flags) {
  return flags.nodes_given && flags.config.min_nodes < flags.config.max_nodes;
}

bool SaysWhereNodesMeet(const RunFlags& flags) {
  return (flags.nodes_given && !IsRange(flags)) || flags.standalone || flags.config.node_rank ||
         flags.master_port || !flags.rdzv_endpoint.empty() || !flags.master_addr.empty() ||
         !flags.rdzv_backend.empty() || !flags.hosts.empty() || !flags.hostfile.empty();
}

absl::Status FollowStep(const SlurmPlace& place, RunFlags& flags) {
  const std::size_t nodes = place.hosts.size();
  if (place.tasks_of_host > 1) {
    // Each of the processes runs a job of its own, which is how sweeps are started.
    if (nodes == 1) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "srun has started ", place.tasks_of_host,
        " processes on a node, and muster starts the workers of its node itself; write `srun "
        "--ntasks-per-node=1 muster run --nproc-per-node=",
        place.tasks_of_host, " ...`"));
  }
  if (place.gpus && !flags.nproc_given && !flags.total_workers) {
    flags.nproc_per_node = absl::StrCat(*place.gpus);
    flags.nproc_given = true;
  }
  const int count = static_cast<int>(nodes);
  if (!IsRange(flags)) {
    flags.config.min_nodes = flags.config.max_nodes = count;
  } else if (flags.config.min_nodes > count) {
    return absl::InvalidArgumentError(
        absl::StrCat("--nnodes=", flags.config.min_nodes, ":", flags.config.max_nodes,
                     " needs more nodes than the ", count, " of this step"));
  } else {
    // Nobody else can come.
    flags.config.max_nodes = std::min(flags.config.max_nodes, count);
  }
  if (nodes == 1) return absl::OkStatus();
  flags.nodes_given = true;
  flags.rdzv_endpoint = absl::StrCat(place.hosts.front(), ":", PortOf(place.name));
  if (flags.config.run_id.empty()) flags.config.run_id = place.name;
  flags.config.shows_shared_report = place.is_first_host;
  return absl::OkStatus();
}

}  // namespace

absl::Status FollowSlurm(const Environment& environment, RunFlags& flags) {
  if (SaysWhereNodesMeet(flags)) return absl::OkStatus();
  const auto place = FindSlurmPlace(environment);
  if (!place.ok()) return place.status();
  if (!place->has_value()) return absl::OkStatus();
  const SlurmPlace& slurm = **place;
  if (slurm.is_step) return FollowStep(slurm, flags);
  const bool here = slurm.hosts.size() == 1 && slurm.is_on_host;
  // Those look at this machine.
  const bool looks = flags.config.purpose != Purpose::kRun;
  if (here || looks || flags.total_workers) return absl::OkStatus();
  if (flags.launch_with.empty()) {
    flags.slurm_nodes = static_cast<int>(slurm.hosts.size());
    return absl::OkStatus();
  }
  for (const std::string& host : slurm.hosts) {
    flags.hosts.push_back({.name = host, .workers = flags.nproc_given ? std::nullopt : slurm.gpus});
  }
  if (flags.config.run_id.empty()) flags.config.run_id = slurm.name;
  return absl::OkStatus();
}

}  // namespace muster::launcher
