#include "trainer/app/strategies/mesh_groups.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "trainer/app/strategies/state_memory.h"
#include "trainer/comm/host_layout.h"
#include "trainer/mesh/mesh_choice.h"
#include "trainer/sharding/state_bytes.h"
#include "trainer/worker/available_memory.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kMostHostName = 65;  // with the zero at its end
constexpr std::size_t kMostDigits = 24;
// Of a rank's memory what may be parameters, gradients and the optimizer's state: activations and
// all else need the rest.
constexpr int kStateShare = 2;

std::string OwnHostName() {
  char name[kMostHostName] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "?";
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
  std::int64_t bytes = 0;
  for (const NamedTensor& parameter : model.Parameters()) bytes += parameter.tensor.nbytes();
  return StateBytes(/*stage=*/0, /*ranks=*/1, bytes,
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

absl::StatusOr<std::unique_ptr<Group>> Connect(const Mesh& mesh, Dimension dimension,
                                               World& world) {
  return world.MakeGroup(absl::StrCat("mesh/", ShortName(dimension)),
                         mesh.MembersOf(world.rank(), dimension));
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
    auto made = Connect(*mesh, dimension, world);
    if (!made.ok()) return made.status();
    *group = *std::move(made);
  }
  // Whoever finds a mistake now ends, and with rank 0 the store goes that others meet in.
  world.all().Barrier();
  return groups;
}

}  // namespace muster::trainer
