// What a rank of a mesh has of a model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/app/strategies/mesh_groups.h"
#include "trainer/app/strategies/mesh_plan.h"
#include "trainer/comm/world.h"
#include "trainer/models/model.h"
#include "trainer/models/objective.h"
#include "trainer/optim/optimizer.h"
#include "trainer/parallel/sharded_parameters.h"
#include "trainer/pipeline/mesh.h"
#include "trainer/runtime/named_tensor.h"

namespace muster::trainer {

// A rank's part of a model: its stages, its part of each of their layers, and its share of what is
// kept of each parameter. First the model is whole, as it was drawn or loaded; Take() leaves this
// rank its part. One thread. Methods that exchange something are called by all ranks, and throw
// what c10d throws. The groups must outlive it.
class MeshPart {
 public:
  // `parts` is where the model is cut (PlanMesh()), `dry_run` one of the model.
  MeshPart(std::unique_ptr<Model> model, std::vector<StageRange> parts, const MeshGroups& groups,
           std::optional<MeshDryRun> dry_run);
  ~MeshPart();
  MeshPart(const MeshPart&) = delete;
  MeshPart& operator=(const MeshPart&) = delete;

  Model& model() { return *model_; }
  const Model& model() const { return *model_; }

  // Gives all ranks what rank 0 of `world` has, and leaves each its part. Call it once.
  // kInvalidArgument when layers cannot be split like that, or a parameter not freed that two
  // stages share; kUnavailable when ranks do not come.
  absl::Status Take(Shard shard, const MeshOptions& flags, World& world);
  // From here on after Take().

  // What each dimension is going to send in a step with `samples` of each data rank, as the mean of
  // all ranks, which are in `world`; 0 where it is not known.
  DimensionBytes Foretell(std::int64_t samples, Group& world) const;
  ShardedParameters& sharded() { return *sharded_; }
  const ShardedParameters& sharded() const { return *sharded_; }
  // Runs a chunk of this rank.
  at::Tensor Forward(const RandomPlace& place, int chunk, const at::Tensor& inputs);

  // After the backward passes of a step: adds up the gradients of parameters, such as tied
  // embeddings, that several ranks of the pipeline have. So these stay equal.
  void SumShared();
  // After Finish() of sharded(), where tensor ranks split the sequence: adds up the gradients of
  // parameters that stay whole, of which each rank has seen a part of the sequence.
  void SumOverSequence();
  // What that sends, by formula.
  std::int64_t BytesOverSequence() const;
  // The parts that this rank owns, and all buffers of its stages.
  std::vector<NamedTensor> OwnState() const;
  // Gives all data ranks the buffers of the first, which are those that are saved: each has
  // statistics of its own samples. Every rank calls it.
  void ShareBuffers();
  // The latter alone, and what else does not change by gradients.
  const std::vector<NamedTensor>& buffers() const { return buffers_; }
  // Of the gradients of all ranks, which are in `world`: scales them if their norm is above `most`,
  // and returns it, one number that nobody has waited for; and whether they are all finite. The
  // same on all ranks.
  at::Tensor Clip(double most, Group& world);
  bool GradientsFinite(Group& world) const;

  // The whole model's state dict: of tensors for each of sharded().shards(), such as averages, and
  // of the buffers that the first data ranks have. Every rank gets all of it.
  std::vector<NamedTensor> WholeState(const std::vector<NamedTensor>& of_shards);
  // The same of the parameters alone, each under its first name.
  std::vector<NamedTensor> WholeParameters(const std::vector<NamedTensor>& of_shards);
  // What optimizers keep, of the whole model: see ShardedParameters::WholeState().
  std::vector<ParameterState> WholeOptimizer(const std::vector<ParameterState>& mine);
  // This rank's part of it.
  std::vector<ParameterState> OwnOptimizer(const std::vector<ParameterState>& whole) const;
  // Copies this rank's part of whole parameters to tensors for each of sharded().shards().
  void TakePart(const std::vector<NamedTensor>& whole,
                const std::vector<NamedTensor>& of_shards) const;

  // Of all parameters of the whole model, in Python's order: tensors that have the sizes, but no
  // memory.
  const std::vector<NamedTensor>& shapes() const { return shapes_; }
  std::int64_t parameter_bytes() const { return parameter_bytes_; }

 private:
  struct Whole;  // a tensor of the state dict
  // Parameters that other ranks of the pipeline have as well, with a group of all that do.
  struct Shared {
    std::vector<NamedTensor> parameters;
    std::unique_ptr<Group> group;
  };

  // What this rank sends for a sample in a step; nullopt where it is not known.
  struct SampleBytes {
    std::optional<std::int64_t> pipeline;
    std::optional<std::int64_t> tensor;
  };

  // The squared norm of the gradients of what this rank owns, each of them counted on one rank: a
  // float64 on `device`.
  at::Tensor SquaredNorm(const at::Device& device) const;
  absl::Status MeetSharers(World& world);
  // Whether a stage of this rank uses it.
  bool Has(const std::string& name) const;
  int OwnerOf(const std::string& name) const;
  // Brings a tensor from the pipeline rank that has it to all; `mine` where this is that rank.
  at::Tensor FromOwner(const std::string& name, const at::Tensor& mine,
                       const std::vector<std::int64_t>& sizes);

  const std::unique_ptr<Model> model_;
  const std::vector<StageRange> parts_;
  const MeshGroups& groups_;
  std::optional<MeshDryRun> dry_run_;  // until Take()
  SampleBytes sample_bytes_;
  std::vector<NamedTensor> shapes_;
  std::vector<Whole> state_;  // in the order of the state dict
  std::int64_t parameter_bytes_ = 0;
  bool splits_sequence_ = false;
  std::vector<std::vector<std::size_t>> units_;  // of each chunk, by stage
  std::vector<std::size_t> stages_;              // of this rank, by their indices in the model
  std::vector<NamedTensor> buffers_;             // of this rank's stages
  std::vector<Shared> shared_;
  std::unique_ptr<ShardedParameters> sharded_;
};

}  // namespace muster::trainer
