// The mesh of a run: chosen, checked, and connected.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/comm/group.h"
#include "trainer/comm/world.h"
#include "trainer/mesh/mesh.h"
#include "trainer/mesh/mesh_request.h"
#include "trainer/models/model.h"

namespace muster::trainer {

// Where this rank is, and a group for each dimension: the ranks that differ from it there alone. A
// rank's number in a group is its place in that dimension. The world must outlive it.
struct MeshGroups {
  Mesh mesh;
  MeshPlace place;
  std::vector<std::string> hosts;  // the name of each rank's
  std::unique_ptr<Group> pipeline;
  std::unique_ptr<Group> data;
  std::unique_ptr<Group> tensor;

  const Group& of(Dimension dimension) const {
    return dimension == Dimension::kPipeline ? *pipeline
           : dimension == Dimension::kData   ? *data
                                             : *tensor;
  }
};

// What a mesh has to suit in `model`, whose name is `name`.
MeshLimits LimitsOf(const Model& model, const std::string& name);

// The mesh that options.parallel.mesh asks for, with groups. Every rank must call it.
// kInvalidArgument and one sentence when it does not suit the ranks, the model or the batch;
// kUnavailable when ranks do not come. Throws what c10d throws.
absl::StatusOr<MeshGroups> ConnectMesh(const Options& options, const Model& model, World& world);

}  // namespace muster::trainer
