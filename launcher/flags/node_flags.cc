// The flags that say how many nodes and workers there are, and what they run on.
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/config/words.h"
#include "launcher/flags/flag_table.h"
#include "launcher/flags/readers.h"
#include "launcher/machine/nproc.h"

namespace muster::launcher {
namespace {

Problem SetNodes(absl::string_view value, RunFlags& flags) {
  const std::vector<absl::string_view> parts = absl::StrSplit(value, ':');
  int min = 0;
  int max = 0;
  if (parts.size() > 2 || !absl::SimpleAtoi(parts.front(), &min) ||
      !absl::SimpleAtoi(parts.back(), &max)) {
    return "is not a number of nodes; write N or MIN:MAX";
  }
  if (min < 1) return "asks for less than one node; write N or MIN:MAX with numbers from 1";
  if (min > max) return "has its minimum above its maximum; write MIN:MAX with MIN <= MAX";
  flags.config.min_nodes = min;
  flags.config.max_nodes = max;
  flags.nodes_given = true;
  return std::nullopt;
}

Problem SetNproc(absl::string_view value, RunFlags& flags) {
  // A machine that has everything: what is wrong there is wrong everywhere. flags.cc asks the real
  // one.
  const auto count = ParseNproc(value, Machine{.cpus = 1, .nvidia_devices = 1}, {});
  if (!count.ok()) return std::string(count.status().message());
  flags.nproc_per_node = std::string(value);
  flags.nproc_given = true;
  return std::nullopt;
}

absl::StatusOr<std::string> ReadRole(absl::string_view text) {
  return ReadName("role", text);
}

constexpr Flag kNodeFlags[] = {
    {.name = "--nnodes",
     .value_name = "N|MIN:MAX",
     .help = "How many nodes take part. With MIN:MAX the job runs on as many as have joined.",
     .default_text = "1; under Slurm its nodes, where no endpoint is given either",
     .set = SetNodes},
    {.name = "--nproc-per-node",
     .short_name = "-ppn",
     .value_name = "N|cpu|gpu|auto",
     .help = "Workers on this node: a number, one per CPU, one per GPU, or (auto) one per GPU if "
             "there are any and otherwise one per CPU. Nodes may differ.",
     .default_text = "1; under Slurm as many as the job has GPUs on the node",
     .set = SetNproc},
    {.name = "--total-workers",
     .short_name = "-n|-np",
     .ours = true,
     .value_name = "N",
     .help = "Workers on all nodes together, as with mpirun. The number per node follows from it, "
             "or, with --nproc-per-node, the number of nodes.",
     .default_text = "not given",
     .set = Store<ReadNumberAboveZero, &RunFlags::total_workers>},
    {.name = "--node-rank",
     .value_name = "N",
     .help = "This node's place in rank order: with --rdzv-endpoint a preference, with "
             "--master-addr the rank itself.",
     .default_text = "SLURM_NODEID or JOB_COMPLETION_INDEX if set and no topology is known",
     .set = Store<ReadNumber, &LaunchConfig::node_rank>},
    {.name = "--topology",
     .ours = true,
     .value_name = "RACK/HOST",
     .help = "Where this node is, the outermost label first. Nodes whose labels begin alike get "
             "neighbouring ranks.",
     .default_text = "the switches in SLURM_TOPOLOGY_ADDR if set",
     .set = Store<ReadText, &LaunchConfig::topology>},
    {.name = "--role",
     .value_name = "NAME",
     .help = "The role of this node's workers: their ROLE_NAME, and their name in output prefixes.",
     .default_text = "default",
     .set = Store<ReadRole, &LaunchConfig::role>},
    {.name = "--devices",
     .ours = true,
     .value_name = "LIST",
     .help = "The GPUs for this node's workers, such as 4,5 or 0-3 or UUIDs. Checks that they "
             "exist and "
             "sets CUDA_VISIBLE_DEVICES.",
     .default_text = "what CUDA_VISIBLE_DEVICES says",
     .set = Store<ReadText, &RunFlags::devices>},
    {.name = "--virtual-local-rank",
     .kind = Flag::Kind::kSwitch,
     .help = "Each worker sees a single GPU, its own, as device 0, and has LOCAL_RANK 0.",
     .set = Store<ReadSwitch, &LaunchConfig::virtual_local_rank>},
    {.name = "--numa-binding",
     .has_variable = false,
     .value_name = "node|socket|exclusive|core-complex",
     .help = "Bind each worker to CPUs near its GPU: all of the NUMA node, all of the socket, its "
             "own share of the node's cores, or the cores that share one cache.",
     .default_text = "not bound",
     .set = Store<ReadWord<kNumaModes>, &LaunchConfig::numa_binding>},
};

}  // namespace

FlagGroup NodeFlags() {
  return {"Nodes and workers", kNodeFlags};
}

}  // namespace muster::launcher
