#include "launcher/machine/numa_binding.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "launcher/machine/devices.h"

namespace muster::launcher {
namespace {

// One who shares a NUMA node with others: a visible GPU, or a worker on CPUs.
struct Place {
  int node = 0;
  std::size_t number = 0;  // among the node's
  std::size_t of = 0;      // how many the node has
};

std::vector<Place> CountPlaces(const std::vector<int>& nodes) {
  std::map<int, std::size_t> counts;
  std::vector<Place> places;
  for (const int node : nodes) places.push_back({.node = node, .number = counts[node]++});
  for (Place& place : places) place.of = counts[place.node];
  return places;
}

// Where workers without GPUs go: blocks of neighbours on neighbouring nodes.
std::vector<int> SpreadOverNodes(int nproc, const NumaTopology& usable) {
  std::set<int> with_cpus;
  for (const auto& [cpu, place] : usable) with_cpus.insert(place.node);
  const std::vector<int> nodes(with_cpus.begin(), with_cpus.end());
  std::vector<int> result;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(nproc); ++rank) {
    result.push_back(nodes[rank * nodes.size() / static_cast<std::size_t>(nproc)]);
  }
  return result;
}

CpuList CpusWith(const NumaTopology& usable, int CpuPlace::*field, int value) {
  CpuList cpus;
  for (const auto& [cpu, place] : usable) {
    if (place.*field == value) cpus.insert(cpus.end(), cpu);
  }
  return cpus;
}

// The node's usable CPUs in groups that have `field` in common, in the order of their lowest CPU.
std::vector<CpuList> GroupsOf(const NumaTopology& usable, int node, int CpuPlace::*field) {
  std::map<int, CpuList> by_value;
  for (const auto& [cpu, place] : usable) {
    if (place.node == node) by_value[place.*field].insert(cpu);
  }
  std::vector<CpuList> groups;
  for (auto& [value, cpus] : by_value) groups.push_back(std::move(cpus));
  return groups;
}

// All NUMA nodes of the socket that the node is on.
CpuList SocketOf(const NumaTopology& topology, const NumaTopology& usable, int node) {
  const auto on_node = [node](const auto& entry) { return entry.second.node == node; };
  const auto any = std::find_if(topology.begin(), topology.end(), on_node);
  return any == topology.end() ? CpuList()
                               : CpusWith(usable, &CpuPlace::package, any->second.package);
}

// Empty when there are fewer cores than there are to share them.
CpuList ExclusiveCores(const NumaTopology& usable, const Place& place) {
  const std::vector<CpuList> cores = GroupsOf(usable, place.node, &CpuPlace::core);
  const std::size_t each = cores.size() / place.of;
  const std::size_t left_over = cores.size() % place.of;
  if (each == 0) return {};
  const std::size_t begin = place.number * each + std::min(place.number, left_over);
  const std::size_t end = begin + each + (place.number < left_over ? 1 : 0);
  CpuList cpus;
  for (std::size_t i = begin; i < end; ++i) cpus.insert(cores[i].begin(), cores[i].end());
  return cpus;
}

CpuList CoreComplex(const NumaTopology& usable, const Place& place) {
  std::vector<CpuList> complexes = GroupsOf(usable, place.node, &CpuPlace::complex);
  if (complexes.empty()) return {};
  std::stable_sort(complexes.begin(), complexes.end(),
                   [](const CpuList& a, const CpuList& b) { return a.size() > b.size(); });
  return complexes[place.number % complexes.size()];
}

CpuList CpusOf(NumaMode mode, const Place& place, const NumaTopology& topology,
               const NumaTopology& usable) {
  switch (mode) {
    case NumaMode::kNode:
      return CpusWith(usable, &CpuPlace::node, place.node);
    case NumaMode::kSocket:
      return SocketOf(topology, usable, place.node);
    case NumaMode::kExclusive:
      return ExclusiveCores(usable, place);
    case NumaMode::kCoreComplex:
      return CoreComplex(usable, place);
  }
  return {};
}

absl::Status NothingLeft(NumaMode mode, std::size_t rank, const Place& place, bool on_gpus,
                         const NumaTopology& usable, const CpuList& allowed) {
  const std::size_t cores = GroupsOf(usable, place.node, &CpuPlace::core).size();
  if (mode == NumaMode::kExclusive && cores > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("--numa-binding=exclusive needs a core for each of the ", place.of,
                     on_gpus ? " GPUs" : " workers", " on NUMA node ", place.node, ", which has ",
                     cores, " that this process may use; choose another mode"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "--numa-binding finds no CPU for local rank ", rank, ": none of NUMA node ", place.node,
      on_gpus ? ", where its GPU is," : "", " is among those this process may use (",
      PrintCpuList(allowed), "); widen its affinity or leave the binding out"));
}

}  // namespace

absl::StatusOr<std::vector<CpuList>> BindWorkers(NumaMode mode, int nproc,
                                                 const std::vector<int>& gpu_nodes,
                                                 const NumaTopology& topology,
                                                 const CpuList& allowed) {
  NumaTopology usable;
  for (const auto& [cpu, place] : topology) {
    if (allowed.count(cpu) > 0) usable.emplace_hint(usable.end(), cpu, place);
  }
  if (usable.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--numa-binding finds no CPU: none that this process may use (",
                     PrintCpuList(allowed), ") is online"));
  }
  const bool on_gpus = !gpu_nodes.empty();
  if (on_gpus && static_cast<std::size_t>(nproc) > gpu_nodes.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--numa-binding places each worker by its GPU, but local rank ",
                     gpu_nodes.size(), " has none: ", nproc, " workers, ", gpu_nodes.size(),
                     " visible GPUs; start fewer, or set CUDA_VISIBLE_DEVICES= for a job on CPUs"));
  }

  const std::vector<Place> places =
      CountPlaces(on_gpus ? gpu_nodes : SpreadOverNodes(nproc, usable));
  std::vector<CpuList> result;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(nproc); ++rank) {
    CpuList cpus = CpusOf(mode, places[rank], topology, usable);
    if (cpus.empty()) return NothingLeft(mode, rank, places[rank], on_gpus, usable, allowed);
    result.push_back(std::move(cpus));
  }
  return result;
}

absl::StatusOr<std::vector<CpuList>> BindWorkersHere(NumaMode mode, int nproc,
                                                     const Environment& environment,
                                                     const std::vector<GpuDevice>& gpus,
                                                     const std::string& sys) {
  const auto topology = ReadNumaTopology(sys);
  if (!topology.ok()) return topology.status();
  std::vector<int> gpu_nodes;
  // Without a known device, entries are names of nothing and the job is one on CPUs.
  for (const std::string& entry :
       gpus.empty() ? std::vector<std::string>() : VisibleDevices(environment, gpus)) {
    const GpuDevice* gpu = FindDevice(entry, gpus);
    if (gpu == nullptr || gpu->pci_bus_id.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("--numa-binding cannot tell where device ", entry,
                       " is: neither NVML nor /proc/driver/nvidia gives its PCI address"));
    }
    const auto node = NumaNodeOfPciDevice(gpu->pci_bus_id, sys);
    if (!node.ok()) return node.status();
    gpu_nodes.push_back(*node);
  }
  return BindWorkers(mode, nproc, gpu_nodes, *topology, AllowedCpus());
}

}  // namespace muster::launcher
