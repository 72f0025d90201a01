#include "trainer/app/strategies/mesh_groups.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "trainer/app/strategies/strategy.h"
#include "trainer/comm/group.h"
#include "trainer/comm/host/transport.h"
#include "trainer/pipeline/mesh.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kMostHostName = 65;  // with the zero at its end
constexpr std::size_t kMostDigits = 24;
// Of a rank's memory what may be parameters, gradients and the optimizer's state: activations and
// all else need the rest.
constexpr int kStateShare = 2;

std::string OwnHostName() {
  char name[kMostHostName] = {};
  return ::gethostname(name, sizeof name) == 0 ? name : "?";
}

// A number for each rank's host.
std::vector<int> NumberHosts(const std::vector<std::string>& ids) {
  std::map<std::string, int> numbers;
  std::vector<int> hosts;
  for (const std::string& id : ids) {
    hosts.push_back(numbers.emplace(id, static_cast<int>(numbers.size())).first->second);
  }
  return hosts;
}

std::int64_t WholeState(const Options& options, const Model& model) {
  return StateBytes(/*stage=*/0, /*ranks=*/1, TensorBytes(model.Parameters()),
                    KeptNumbers(options.optimizer, options.ema_decay > 0));
}

// What the rank with the least has, when the ranks of each host share what there is.
std::int64_t MemoryOfRank(const std::vector<int>& host_of_rank, World& world) {
  const int own = host_of_rank[static_cast<std::size_t>(world.rank())];
  const auto sharing = std::count(host_of_rank.begin(), host_of_rank.end(), own);
  std::int64_t least = 0;
  for (const std::string& text :
       world.all().Gather(absl::StrCat(AvailableMemory() / sharing), kMostDigits)) {
    std::int64_t bytes = 0;
    if (absl::SimpleAtoi(text, &bytes) && bytes > 0)
      least = least == 0 ? bytes : std::min(least, bytes);
  }
  return least;
}

absl::StatusOr<Mesh> Decide(const Options& options, const Model& model,
                            const std::vector<int>& host_of_rank, World& world) {
  const MeshLimits limits = LimitsOf(model, options.model.name);
  const MeshRequest request = options.parallel.mesh.request.value_or(MeshRequest());
  if (!request.choose) return FitMesh(request, world.size(), limits);
  return ChooseMesh({.host_of_rank = host_of_rank,
                     .state_bytes = WholeState(options, model),
                     .memory_bytes = MemoryOfRank(host_of_rank, world) / kStateShare},
                    limits);
}

}  // namespace

MeshLimits LimitsOf(const Model& model, const std::string& name) {
  return {.model = name,
          .tensor_divides = model.tensor_divides(),
          .tensor_divides_what = model.tensor_divides_what(),
          .stages = static_cast<int>(model.stages().size())};
}

absl::StatusOr<MeshGroups> ConnectMesh(const Options& options, const Model& model, World& world) {
  const std::vector<int> host_of_rank = NumberHosts(world.all().Gather(HostId(), kHostIdBytes));
  const absl::StatusOr<Mesh> mesh = Decide(options, model, host_of_rank, world);
  if (!mesh.ok()) return mesh.status();
  MeshGroups groups = {.mesh = *mesh,
                       .place = mesh->PlaceOf(world.rank()),
                       .hosts = world.all().Gather(OwnHostName(), kMostHostName)};
  // All make their groups in this order, or some would wait for one another.
  for (const auto& [dimension, group] :
       {std::pair(Dimension::kTensor, &groups.tensor), std::pair(Dimension::kData, &groups.data),
        std::pair(Dimension::kPipeline, &groups.pipeline)}) {
    auto made = world.MakeGroup(absl::StrCat("mesh/", ShortName(dimension)),
                                mesh->MembersOf(world.rank(), dimension));
    if (!made.ok()) return made.status();
    *group = *std::move(made);
  }
  // Whoever finds a mistake now ends, and with rank 0 the store goes that others meet in.
  world.all().Barrier();
  return groups;
}

namespace {

std::optional<std::int64_t> AddedUp(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

}  // namespace

MeshTraffic::LeftOut::LeftOut(MeshTraffic& traffic) : traffic_(traffic) {
  for (const Dimension dimension : kDimensions) {
    before_[static_cast<std::size_t>(dimension)] = traffic.SentIn(dimension);
  }
}

MeshTraffic::LeftOut::~LeftOut() {
  for (const Dimension dimension : kDimensions) {
    const auto index = static_cast<std::size_t>(dimension);
    Traffic& total = traffic_.left_out_[index];
    const Traffic sent = traffic_.SentIn(dimension).Since(before_[index]);
    total.formula_bytes += sent.formula_bytes;
    total.counted_bytes = total.counted_bytes.value_or(0) + sent.counted_bytes.value_or(0);
  }
}

Traffic MeshTraffic::SentIn(Dimension dimension) const {
  const Group& group = groups_.of(dimension);
  Traffic total = {.counted_bytes = 0};
  for (const Use use : {Use::kGradients, Use::kParameters, Use::kActivations}) {
    const Traffic one = group.traffic(use);
    total.formula_bytes += one.formula_bytes;
    // What was not used at all need not be counted.
    if (one.formula_bytes > 0) {
      total.counted_bytes = AddedUp(total.counted_bytes, one.counted_bytes);
    }
  }
  return total;
}

Traffic MeshTraffic::Of(Dimension dimension, std::int64_t steps) const {
  Traffic total = SentIn(dimension);
  const Traffic& left_out = left_out_[static_cast<std::size_t>(dimension)];
  total.steps = steps;
  total.formula_bytes -= left_out.formula_bytes;
  if (total.counted_bytes) *total.counted_bytes -= left_out.counted_bytes.value_or(0);
  return total;
}

Traffic MeshTraffic::Total(std::int64_t steps) const {
  Traffic total = {.steps = steps, .counted_bytes = 0};
  for (const Dimension dimension : kDimensions) {
    const Traffic one = Of(dimension, steps);
    total.formula_bytes += one.formula_bytes;
    total.counted_bytes = AddedUp(total.counted_bytes, one.counted_bytes);
  }
  return total;
}

std::vector<std::pair<std::string, Traffic>> MeshTraffic::ByDimension(std::int64_t steps) const {
  std::vector<std::pair<std::string, Traffic>> all;
  for (const Dimension dimension : kDimensions) {
    if (groups_.mesh.Of(dimension) > 1) all.emplace_back(LongName(dimension), Of(dimension, steps));
  }
  return all;
}

namespace {

constexpr std::int64_t kKibibyte = 1024;

std::int64_t OfMachine(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  std::string word;
  while (file >> word) {
    std::int64_t kibibytes = 0;
    if (word == "MemAvailable:" && file >> kibibytes) return kibibytes * kKibibyte;
  }
  return 0;
}

// The number in a file; nullopt when there is none, as in one that says "max".
std::optional<std::int64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// "/a/b", this process's place in the one hierarchy of version 2.
std::string ControlGroup(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "0::")) return line.substr(3);
  }
  return "";
}

}  // namespace

std::int64_t AvailableMemory(const std::string& root) {
  std::int64_t least = OfMachine(root);
  if (least == 0) least = std::numeric_limits<std::int64_t>::max();
  for (std::string group = ControlGroup(root); absl::StartsWith(group, "/");
       group.resize(group.rfind('/'))) {
    const std::string folder = root + "/sys/fs/cgroup" + group;
    const auto most = NumberIn(folder + "/memory.max");
    const auto now = NumberIn(folder + "/memory.current");
    if (most && now) least = std::min(least, std::max<std::int64_t>(*most - *now, 1));
    if (group == "/") break;
  }
  return least == std::numeric_limits<std::int64_t>::max() ? 0 : least;
}

}  // namespace muster::trainer
