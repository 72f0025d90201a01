#include "launcher/machine/numa_topology.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/failure.h"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;

// The file's text without the blanks around it; nothing when it cannot be read.
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

// The lowest CPU of the list in the file, or `otherwise` where there is no such file or list.
int LowestIn(const std::string& path, int otherwise) {
  const auto cpus = ReadCpuList(path);
  return cpus.ok() && !cpus->empty() ? *cpus->begin() : otherwise;
}

// N of the entries `prefix`N of a directory.
std::set<int> Numbered(const std::string& directory, absl::string_view prefix) {
  std::set<int> numbers;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    absl::string_view rest = name;
    int number = 0;
    if (absl::ConsumePrefix(&rest, prefix) && absl::SimpleAtoi(rest, &number)) {
      numbers.insert(number);
    }
  }
  return numbers;
}

// The lowest CPU behind the same cache as `cpu`, of the caches that hold data the one furthest from
// the core.
int Complex(const std::string& cpu_directory, int cpu) {
  int highest_level = 0;
  int complex = cpu;
  for (const int index : Numbered(cpu_directory + "/cache", "index")) {
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
  // -1 where the architecture has no such thing.
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
  for (const int node : Numbered(nodes, "node")) {
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

}  // namespace muster::launcher
