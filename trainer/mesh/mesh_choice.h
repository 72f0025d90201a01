// Chooses a mesh for --mesh auto.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/mesh/mesh.h"
#include "trainer/mesh/mesh_request.h"

namespace muster::trainer {

// What a choice depends on, besides the limits of the model.
struct MeshNeeds {
  std::vector<int> host_of_rank;  // a number for each host
  std::int64_t state_bytes = 0;   // of all parameters, their gradients and the optimizer's state
  std::int64_t memory_bytes = 0;  // that a rank has for them; 0: unknown, and enough
};

// Bytes of the fullest rank's part of the state: tensor and pipeline ranks have equal parts of it,
// data ranks each all of it.
std::int64_t StateBytesOfRank(const Mesh& mesh, std::int64_t state_bytes);

// Whether each group of the tensor dimension is on one host.
bool TensorStaysInHosts(const Mesh& mesh, const std::vector<int>& host_of_rank);

// A mesh of all ranks: as much of it in the data dimension as memory allows, as gradients can be
// exchanged while others are computed, and the other dimensions make ranks wait for one another.
// Where the state of the model is too large for a rank, it is shared by as few ranks as it takes,
// in the tensor dimension as far as its groups stay inside hosts, then in that of the pipeline. The
// same on every rank, and for a job that has lost ranks the mesh that suits what is left.
// kInvalidArgument and one sentence, with the bytes, when no mesh of these ranks has enough memory.
absl::StatusOr<Mesh> ChooseMesh(const MeshNeeds& needs, const MeshLimits& limits);

}  // namespace muster::trainer
