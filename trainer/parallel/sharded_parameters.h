// Parameters, gradients and optimizer state that are divided among data-parallel ranks instead of
// replicated.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/optim/optimizer.h"
#include "trainer/parallel/flat_unit.h"
#include "trainer/runtime/named_tensor.h"

namespace muster::trainer {

// What each rank keeps only a part of: ZeRO's stages.
enum class Shard {
  kOptimizer = 1,   // the optimizer's state
  kGradients = 2,   // gradients as well
  kParameters = 3,  // parameters as well
};

// The parameters of a model, or of a rank's part of one, in units: each unit is gathered, freed and
// reduced separately, and belongs to one stage of the model. In a step, run each stage with Run(),
// run backward, call EndBackward(), and repeat this for each micro-batch; then call Finish(), let
// an ordinary optimizer update shards(), and call Changed(). All elements of a parameter get the
// same update whichever rank owns them, so the result is DDP's; with two ranks bit for bit.
//
// A parameter that no rank has used has a gradient of 0. One thread. All ranks of the group make
// the same calls. Methods throw what c10d throws. `group` must outlive it.
class ShardedParameters {
 public:
  // `units` in the order in which forward uses them, each parameter in exactly one; a unit is empty
  // if its stage has no parameters. All ranks have the same values. The caller leaves out
  // parameters that require no gradient. Throws as FlatUnit.
  ShardedParameters(std::vector<std::vector<NamedTensor>> units, Shard shard, Group& group);
  ~ShardedParameters();
  ShardedParameters(const ShardedParameters&) = delete;
  ShardedParameters& operator=(const ShardedParameters&) = delete;

  // Returns the result of `forward`, which uses only the parameters of unit `unit`. Gathers them
  // first, and the next unit's while it runs.
  at::Tensor Run(std::size_t unit, const std::function<at::Tensor()>& forward);

  // Call it after the backward pass of a micro-batch.
  void EndBackward();
  // Call it after the last one of a step: the gradients of shards() become the mean over the ranks,
  // summed over micro-batches.
  void Finish();

  // This rank's parts of parameters, under the parameters' names. Each has as many dimensions as
  // its parameter, all but the last of size 1, as the optimizer decides by them which ones decay.
  const std::vector<NamedTensor>& shards() const { return shards_; }
  // The shards have changed: parameters are gathered again at their next use.
  void Changed();
  // Gathers them now.
  void GatherAll();

  // The sum of squares of the gradients of `shards()`: this rank's part of the squared norm.
  double SquaredNorm() const;

  // From tensors for each of shards(), such as averages, to the whole ones, under the parameters'
  // names. Every rank calls it and gets all.
  std::vector<NamedTensor> Whole(const std::vector<NamedTensor>& of_shards) const;
  // The optimizer state of shards(), whole, without its groups; every rank calls it and gets all.
  // And this rank's part of a whole state.
  std::vector<ParameterState> WholeState(const std::vector<ParameterState>& mine) const;
  std::vector<ParameterState> PartOfState(const std::vector<ParameterState>& whole) const;
  // Copies this rank's part of `whole`, tensors under the parameters' names, into `of_shards`,
  // tensors for each of shards().
  void TakePart(const std::vector<NamedTensor>& whole,
                const std::vector<NamedTensor>& of_shards) const;

  // Bytes that a rank sends in a step without accumulation: 2(n-1)/n of the bytes of all
  // parameters, or with kParameters 3(n-1)/n. ZeRO, section 7. Both include padding.
  std::int64_t FormulaBytes() const;
  std::int64_t parameter_bytes() const;

 private:
  struct Unit;

  // Reduces the units whose gradients are complete, from the last to the first: in the same order
  // on all ranks.
  void ReduceComplete();
  void Reduce(Unit& unit);
  // A flat part of `unit` filled from the tensors of its slices, by name; zero where there is none.
  at::Tensor Packed(const Unit& unit,
                    const std::function<at::Tensor(const std::string&)>& find) const;
  at::Tensor SliceOf(const Unit& unit, const FlatSlice& slice, const at::Tensor& part) const;

  const Shard shard_;
  Group& group_;
  std::vector<std::unique_ptr<Unit>> units_;  // null if the stage has no parameters
  std::vector<NamedTensor> shards_;
  std::size_t reduced_from_ = 0;  // in this backward pass: units from here on have been reduced
};

}  // namespace muster::trainer
