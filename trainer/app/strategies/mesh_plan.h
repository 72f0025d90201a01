// How the ranks of a mesh take a model apart, and whether its flags suit it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/app/strategies/mesh_groups.h"
#include "trainer/comm/comm.h"
#include "trainer/mesh/mesh.h"
#include "trainer/mesh/mesh_table.h"
#include "trainer/models/model.h"
#include "trainer/pipeline/pipeline_schedule.h"

namespace muster::trainer {

// The same on all ranks.
struct MeshPlan {
  std::vector<StageRange> cuts;  // the stages of each part of a pipeline, in their order
  std::optional<PipelineSchedule> schedule;  // of a pipeline of several ranks
};

// What options.parallel.mesh says for `model` on `mesh`. kInvalidArgument and one sentence, which
// says what would fit, when its flags do not suit each other, the mesh or the model.
absl::StatusOr<MeshPlan> PlanMesh(const Options& options, Model& model, const Mesh& mesh,
                                  Comm comm);

// What the user is told of it before the first step, a line each: who is where, what each dimension
// is going to send in a step, what is unwise about that, and where a pipeline is cut.
std::vector<std::string> MeshLines(const Options& options, const MeshGroups& groups,
                                   const MeshPlan& plan, const Model& model,
                                   const DimensionBytes& foretold);

}  // namespace muster::trainer
