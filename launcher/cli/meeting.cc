#include "launcher/cli/meeting.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "rendezvous/core/values/phrases.h"
#include "rendezvous/net/endpoint.h"

namespace muster::launcher {
namespace {

// The rank that the scheduler gave this node. What is no number there is not meant for us.
std::optional<int> SchedulerRank(const Environment& environment) {
  for (const char* variable : {"SLURM_NODEID", "JOB_COMPLETION_INDEX"}) {
    int rank = 0;
    if (absl::SimpleAtoi(GetOr(environment, variable, ""), &rank) && rank >= 0) return rank;
  }
  return std::nullopt;
}

// The switches above this node: "s0/s4" of Slurm's SLURM_TOPOLOGY_ADDR=s0.s4.node12, whose parts
// SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node names. The node's own name, the last of them, may
// have dots.
std::string SchedulerTopology(const Environment& environment) {
  const std::string pattern = GetOr(environment, "SLURM_TOPOLOGY_ADDR_PATTERN", "");
  const std::vector<std::string> kinds = absl::StrSplit(pattern, '.');
  std::vector<std::string> labels =
      absl::StrSplit(GetOr(environment, "SLURM_TOPOLOGY_ADDR", ""),
                     absl::MaxSplits('.', static_cast<int>(kinds.size()) - 1));
  if (labels.size() != kinds.size() || kinds.back() != "node") return "";
  labels.pop_back();
  return absl::StrJoin(labels, "/");
}

// torchrun's static rendezvous.
RendezvousMode StaticMode(const LaunchConfig& config) {
  return config.max_nodes == 1 ? RendezvousMode::kFixedPort : RendezvousMode::kStatic;
}

bool IsStatic(const LaunchConfig& config) {
  return config.mode == RendezvousMode::kFixedPort || config.mode == RendezvousMode::kStatic;
}

// The mode and endpoint when --rdzv-endpoint is given.
absl::Status MeetAtEndpoint(const RunFlags& flags, LaunchConfig& config) {
  const bool is_static = flags.rdzv_backend == "static";
  // A static endpoint is the workers' own MASTER_PORT, which nobody should have to guess.
  const auto endpoint = rendezvous::ParseEndpoints(
      flags.rdzv_endpoint,
      is_static ? std::nullopt : std::optional<std::uint16_t>(rendezvous::kDefaultRendezvousPort));
  if (!endpoint.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rdzv-endpoint=", flags.rdzv_endpoint, " ", endpoint.status().message()));
  }
  if (is_static && !endpoint->standbys.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--rdzv-endpoint=", flags.rdzv_endpoint,
        " names several places, and with --rdzv-backend=static it is where node rank 0 is; name "
        "one"));
  }
  if (endpoint->port != 0) {
    config.endpoint = *endpoint;
    config.mode = is_static ? StaticMode(config) : RendezvousMode::kEndpoint;
    return absl::OkStatus();
  }
  // torchrun's documented way to run several jobs on one machine is localhost:0.
  if (config.max_nodes == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--rdzv-endpoint=", flags.rdzv_endpoint,
                                                 " has port 0, which the other nodes of ",
                                                 NodesText(config), " cannot know; choose a port"));
}

// The mode and endpoint when --rdzv-endpoint is not given.
absl::Status MeetAtMaster(const RunFlags& flags, LaunchConfig& config) {
  const int port = flags.master_port.value_or(0);
  // A master address alone does not make a job of one node static; torchrun does not look at it
  // either.
  if (config.max_nodes == 1 && port == 0) return absl::OkStatus();
  if (config.max_nodes > 1) {
    if (flags.master_addr.empty() && !flags.master_port) {
      return absl::InvalidArgumentError(
          absl::StrCat(NodesText(config),
                       " needs --rdzv-endpoint=HOST:PORT, the same on every node, or "
                       "--master-addr and --node-rank"));
    }
    if (flags.master_port && port == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--master-port=0 leaves the port open, which the other nodes of ",
                       NodesText(config), " cannot know; choose a port"));
    }
  }
  config.endpoint.host = flags.master_addr.empty() ? "127.0.0.1" : flags.master_addr;
  config.endpoint.port =
      static_cast<std::uint16_t>(port == 0 ? rendezvous::kDefaultMasterPort : port);
  const bool is_static = flags.rdzv_backend.empty() || flags.rdzv_backend == "static";
  config.mode = is_static || config.max_nodes == 1 ? StaticMode(config) : RendezvousMode::kEndpoint;
  return absl::OkStatus();
}

absl::Status SetMode(const RunFlags& flags, LaunchConfig& config) {
  if (!flags.standalone) {
    return flags.rdzv_endpoint.empty() ? MeetAtMaster(flags, config)
                                       : MeetAtEndpoint(flags, config);
  }
  if (config.min_nodes > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--standalone runs one node, but ", NodesText(config), " asks for more; drop one of them"));
  }
  config.max_nodes = 1;
  return absl::OkStatus();
}

// Who this node is among the others.
absl::Status SetPlace(const Environment& environment, LaunchConfig& config) {
  if (config.max_nodes == 1) return absl::OkStatus();
  if (config.topology.empty()) config.topology = SchedulerTopology(environment);
  const bool exact = config.mode == RendezvousMode::kStatic;
  // A scheduler numbers its nodes by name. Where they are says more of who is near to whom, and a
  // rank that is asked for would come before it.
  if (!config.node_rank && (exact || config.topology.empty())) {
    config.node_rank = SchedulerRank(environment);
  }
  if (!exact) return absl::OkStatus();

  const std::string nodes = NodesText(config);
  // torchrun's static rendezvous has no minimum: all nodes, with rank 0 for the one that does not
  // say.
  config.min_nodes = config.max_nodes;
  if (!config.node_rank) config.node_rank = 0;
  if (*config.node_rank < config.max_nodes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("node rank ", *config.node_rank,
                                                 " is not among the nodes of ", nodes,
                                                 ", which count from 0; correct one of the two"));
}

// 0.0.0.0 and its like are for whoever listens, which is node rank 0 of torchrun's static
// rendezvous.
absl::Status CheckAddresses(const RunFlags& flags, const LaunchConfig& config) {
  if (config.max_nodes > 1) {
    if (const std::string why = rendezvous::WhyNobodyConnects(config.local_addr); !why.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--local-addr=", config.local_addr, " ", why,
                       "; give an address of this machine that the other nodes reach"));
    }
  }
  const bool is_for_others = config.mode == RendezvousMode::kEndpoint ||
                             (config.mode == RendezvousMode::kStatic && config.node_rank != 0);
  if (!is_for_others) return absl::OkStatus();
  for (const rendezvous::Endpoint& place : rendezvous::EachOf(config.endpoint)) {
    const std::string why = rendezvous::WhyNobodyConnects(place.host);
    if (why.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        flags.rdzv_endpoint.empty() ? absl::StrCat("--master-addr=", place.host)
                                    : absl::StrCat("--rdzv-endpoint=", flags.rdzv_endpoint),
        ": ", place.host, " ", why,
        "; give the name or one address of the machine where the rendezvous is"));
  }
  return absl::OkStatus();
}

// The job's name.
std::string RunId(const RunFlags& flags, const Environment& environment, RendezvousMode mode) {
  // --standalone overrides every --rdzv flag, as torchrun's does: two such jobs on one machine
  // never share a name, whatever the script around them gives.
  const std::string& given = flags.options.run_id;
  if (!given.empty() && !flags.standalone) return given;
  if (mode == RendezvousMode::kStandalone) {
    return absl::StrCat("standalone-", base::RandomName(8));
  }
  // Nodes that meet must agree on the id, so it cannot be drawn. Slurm's number is the same on all
  // of them; static nodes need no name, as they share their rendezvous with nobody.
  const std::string slurm_job = GetOr(environment, "SLURM_JOB_ID", "");
  const bool is_shared = mode == RendezvousMode::kEndpoint;
  if (is_shared && rendezvous::CheckName("run id", slurm_job).ok()) return slurm_job;
  return "none";  // torchrun's
}

}  // namespace

absl::Status ResolveRendezvous(const RunFlags& flags, const Environment& environment,
                               LaunchConfig& config) {
  absl::Status status = SetMode(flags, config);
  if (status.ok()) status = SetPlace(environment, config);
  if (status.ok()) status = CheckAddresses(flags, config);
  if (!status.ok()) return status;

  config.run_id = RunId(flags, environment, config.mode);
  if (IsStatic(config) && !flags.join_timeout_given) {
    config.timeouts.join = std::chrono::seconds(900);  // torchrun's default for static alone
  }
  const bool share_disabled = GetOr(environment, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0") == "1";
  config.worker_store =
      flags.worker_store.value_or(share_disabled ? WorkerStore::kWorker : WorkerStore::kAgent);
  const bool has_network =
      config.mode == RendezvousMode::kEndpoint || config.mode == RendezvousMode::kStatic;
  // On one node without an endpoint the store is on loopback, and there is nothing to carry.
  if (config.worker_store == WorkerStore::kTunnel && !has_network) {
    config.worker_store = WorkerStore::kAgent;
  }
  return absl::OkStatus();
}

std::string NodesText(const LaunchConfig& config) {
  return config.min_nodes == config.max_nodes
             ? absl::StrCat("--nnodes=", config.max_nodes)
             : absl::StrCat("--nnodes=", config.min_nodes, ":", config.max_nodes);
}

}  // namespace muster::launcher
