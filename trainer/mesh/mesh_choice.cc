#include "trainer/mesh/mesh_choice.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster::trainer {
namespace {

// All meshes of `ranks` ranks.
std::vector<Mesh> MeshesOf(int ranks) {
  std::vector<Mesh> meshes;
  for (int pipeline = 1; pipeline <= ranks; ++pipeline) {
    if (ranks % pipeline != 0) continue;
    for (int tensor = 1; tensor <= ranks / pipeline; ++tensor) {
      if (ranks / pipeline % tensor == 0) {
        meshes.push_back({pipeline, ranks / pipeline / tensor, tensor});
      }
    }
  }
  return meshes;
}

// The best is the least: few ranks that share a model, and of those as many as possible in the
// tensor dimension.
std::tuple<int, int> Order(const Mesh& mesh) {
  return {mesh.pipeline * mesh.tensor, mesh.pipeline};
}

std::string StateMegabytes(std::int64_t bytes) {
  return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

std::int64_t StateBytesOfRank(const Mesh& mesh, std::int64_t state_bytes) {
  const std::int64_t sharing = std::int64_t{mesh.pipeline} * mesh.tensor;
  return (state_bytes + sharing - 1) / sharing;
}

bool TensorStaysInHosts(const Mesh& mesh, const std::vector<int>& host_of_rank) {
  for (std::size_t rank = 0; rank < host_of_rank.size(); ++rank) {
    const std::size_t first = rank - rank % static_cast<std::size_t>(mesh.tensor);
    if (host_of_rank[rank] != host_of_rank[first]) return false;
  }
  return true;
}

absl::StatusOr<Mesh> ChooseMesh(const MeshNeeds& needs, const MeshLimits& limits) {
  const int ranks = static_cast<int>(needs.host_of_rank.size());
  std::optional<Mesh> best;
  std::int64_t least = needs.state_bytes;  // that any mesh asks of a rank
  for (const Mesh& mesh : MeshesOf(ranks)) {
    if (!CheckMesh(mesh, limits).ok() || !TensorStaysInHosts(mesh, needs.host_of_rank)) continue;
    const std::int64_t bytes = StateBytesOfRank(mesh, needs.state_bytes);
    least = std::min(least, bytes);
    if (needs.memory_bytes > 0 && bytes > needs.memory_bytes) continue;
    if (!best || Order(mesh) < Order(*best)) best = mesh;
  }
  if (best) return *best;
  return absl::InvalidArgumentError(absl::StrCat(
      "--mesh auto: parameters, gradients and optimizer of ", limits.model, " take ",
      StateMegabytes(needs.state_bytes), ", on ", ranks, " ranks at least ", StateMegabytes(least),
      " each, and a rank has ", StateMegabytes(needs.memory_bytes),
      "; start more ranks, on more hosts, or give --mesh to try it anyway"));
}

}  // namespace muster::trainer
