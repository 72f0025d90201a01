#include "launcher/machine/numa.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "base/failure.h"
#include "launcher/machine/devices.h"
#include "launcher/machine/nvml.h"

namespace muster::launcher {
namespace {

// The file's text without surrounding blanks; nullopt if it cannot be read.
std::optional<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  absl::StripAsciiWhitespace(&text);
  return text;
}

absl::StatusOr<CpuList> ReadCpuList(const std::string& path) {
  const auto text = ReadText(path);
  if (!text) return base::SystemFailure(absl::StatusCode::kNotFound, "read", path);
  auto cpus = ParseCpuList(*text);
  if (!cpus) {
    return base::Failure(absl::StatusCode::kInternal, "read", path,
                         absl::StrCat("not a CPU list: ", *text));
  }
  return *std::move(cpus);
}

// The lowest CPU of the list in the file, or `otherwise` if there is no such file or list.
int LowestIn(const std::string& path, int otherwise) {
  const auto cpus = ReadCpuList(path);
  return cpus.ok() && !cpus->empty() ? *cpus->begin() : otherwise;
}

// The lowest CPU that shares `cpu`'s last-level data cache.
int Complex(const std::string& cpu_directory, int cpu) {
  int highest_level = 0;
  int complex = cpu;
  for (const int index : NumbersIn(cpu_directory + "/cache", "index")) {
    const std::string cache = absl::StrCat(cpu_directory, "/cache/index", index);
    const std::string type = ReadText(cache + "/type").value_or("");
    if (type != "Unified" && type != "Data") continue;
    int level = 0;
    if (!absl::SimpleAtoi(ReadText(cache + "/level").value_or(""), &level)) continue;
    if (level <= highest_level) continue;
    highest_level = level;
    complex = LowestIn(cache + "/shared_cpu_list", cpu);
  }
  return complex;
}

CpuPlace ReadPlace(const std::string& cpus, int cpu, int node) {
  const std::string directory = absl::StrCat(cpus, "/cpu", cpu);
  CpuPlace place{.node = node};
  const auto package = ReadText(directory + "/topology/physical_package_id");
  // -1 if the architecture does not define packages.
  if (!absl::SimpleAtoi(package.value_or(""), &place.package)) place.package = 0;
  place.package = std::max(place.package, 0);
  place.core = LowestIn(directory + "/topology/thread_siblings_list", cpu);
  place.complex = Complex(directory, cpu);
  return place;
}

}  // namespace

absl::StatusOr<NumaTopology> ReadNumaTopology(const std::string& sys) {
  const std::string cpus = sys + "/devices/system/cpu";
  const auto online = ReadCpuList(cpus + "/online");
  if (!online.ok()) return online.status();

  std::map<int, int> node_of_cpu;
  const std::string nodes = sys + "/devices/system/node";
  for (const int node : NumbersIn(nodes, "node")) {
    const auto list = ReadCpuList(absl::StrCat(nodes, "/node", node, "/cpulist"));
    if (!list.ok()) return list.status();
    for (const int cpu : *list) node_of_cpu[cpu] = node;
  }

  NumaTopology topology;
  for (const int cpu : *online) {
    const auto node = node_of_cpu.find(cpu);
    topology[cpu] = ReadPlace(cpus, cpu, node == node_of_cpu.end() ? 0 : node->second);
  }
  return topology;
}

absl::StatusOr<int> NumaNodeOfPciDevice(const std::string& pci_bus_id, const std::string& sys) {
  const std::string path = absl::StrCat(sys, "/bus/pci/devices/", pci_bus_id, "/numa_node");
  const auto text = ReadText(path);
  if (!text) return base::SystemFailure(absl::StatusCode::kNotFound, "read", path);
  int node = 0;
  if (!absl::SimpleAtoi(*text, &node)) {
    return absl::InternalError(absl::StrCat("read ", path, ": not a NUMA node: ", *text));
  }
  return std::max(node, 0);
}

namespace {

// A visible GPU or a CPU worker that shares a NUMA node with others.
struct Place {
  int node = 0;
  std::size_t number = 0;  // index on the node
  std::size_t of = 0;      // how many share the node
};

std::vector<Place> CountPlaces(const std::vector<int>& nodes) {
  std::map<int, std::size_t> counts;
  std::vector<Place> places;
  for (const int node : nodes) places.push_back({.node = node, .number = counts[node]++});
  for (Place& place : places) place.of = counts[place.node];
  return places;
}

// Where workers without GPUs go: consecutive ranks in blocks on consecutive nodes.
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

// The node's usable CPUs, grouped by `field`, in order of their lowest CPU.
std::vector<CpuList> GroupsOf(const NumaTopology& usable, int node, int CpuPlace::*field) {
  std::map<int, CpuList> by_value;
  for (const auto& [cpu, place] : usable) {
    if (place.node == node) by_value[place.*field].insert(cpu);
  }
  std::vector<CpuList> groups;
  for (auto& [value, cpus] : by_value) groups.push_back(std::move(cpus));
  return groups;
}

// Usable CPUs on all NUMA nodes of the node's socket.
CpuList SocketOf(const NumaTopology& topology, const NumaTopology& usable, int node) {
  const auto on_node = [node](const auto& entry) { return entry.second.node == node; };
  const auto any = std::find_if(topology.begin(), topology.end(), on_node);
  return any == topology.end() ? CpuList()
                               : CpusWith(usable, &CpuPlace::package, any->second.package);
}

// Empty if there are fewer cores than workers or GPUs.
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
  // Without known devices the entries mean nothing, and the job runs on CPUs.
  for (const std::string& entry :
       gpus.empty() ? std::vector<std::string>() : VisibleDevices(environment, gpus)) {
    const GpuDevice* gpu = FindDevice(entry, gpus);
    if (gpu == nullptr || gpu->pci_bus_id.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("--numa-binding cannot find where device ", entry,
                       " is: neither NVML nor /proc/driver/nvidia gives its PCI address"));
    }
    const auto node = NumaNodeOfPciDevice(gpu->pci_bus_id, sys);
    if (!node.ok()) return node.status();
    gpu_nodes.push_back(*node);
  }
  return BindWorkers(mode, nproc, gpu_nodes, *topology, AllowedCpus());
}

}  // namespace muster::launcher
