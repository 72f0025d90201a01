// How the ranks of a mesh take a model apart, and whether its flags suit it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/app/strategies/mesh_groups.h"
#include "trainer/comm/host/transport.h"
#include "trainer/models/model.h"
#include "trainer/parallel/mesh_links.h"
#include "trainer/pipeline/mesh.h"
#include "trainer/pipeline/schedules.h"

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

// What ranks that share a model will send, found before the first step.

// A sample as the model takes them, of zeros: B = 1. Not defined when only a recipe knows how they
// look.
at::Tensor SomeInputs(const Options& options, const Model& model);

// Takes one sample of zeros through a model, first whole and then in parts. One thread.
class MeshDryRun {
 public:
  // Takes it through the stages of `model`, which is whole. nullopt when it cannot be known how
  // samples look, or stages refuse zeros.
  static std::optional<MeshDryRun> Of(const Options& options, Model& model);

  // Bytes that the rank at `place` sends for a sample, forward and backward, where a model is cut
  // into `cuts`: to the ranks beside it in the pipeline, of which each of `shares` tensor ranks has
  // a part ...
  std::int64_t PipelineBytes(const std::vector<StageRange>& cuts, const Mesh& mesh,
                             const MeshPlace& place, Driver driver, int shares) const;
  // ... and over `links`, over which `model` is split. Nothing is sent meanwhile, and the model is
  // left as it was. nullopt when its stages refuse zeros.
  std::optional<std::int64_t> TensorBytes(Model& model, const std::vector<StageRange>& cuts,
                                          const Mesh& mesh, const MeshPlace& place,
                                          TensorGroupLinks& links) const;

 private:
  explicit MeshDryRun(const Options& options);
  // Bytes that go from the stage before `stage` to it, and back as its gradient.
  std::int64_t BytesInto(std::size_t stage, int shares) const;
  // Of TensorBytes() those of the stages of `range`.
  std::optional<std::int64_t> BytesWithin(Model& model, const StageRange& range,
                                          TensorGroupLinks& links) const;

  const DataShape shape_;
  const Objective objective_;
  const std::optional<c10::ScalarType> autocast_;
  std::vector<at::Tensor> inputs_;  // of each stage
};

}  // namespace muster::trainer
