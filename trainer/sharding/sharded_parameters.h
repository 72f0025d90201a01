// Parameters, gradients and optimizer state that data-parallel ranks share instead of each keeping
// all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/named_tensor.h"
#include "trainer/optim/optimizer_state.h"
#include "trainer/sharding/flat_unit.h"

namespace muster::trainer {

// What each rank keeps only a part of: ZeRO's stages.
enum class Shard {
  kOptimizer = 1,   // the optimizer's state
  kGradients = 2,   // gradients as well
  kParameters = 3,  // parameters as well
};

// The parameters of a model, or of a rank's part of one, in units: each unit is gathered, freed and
// reduced by itself, and is what one stage of the model uses. In a step, run each stage by Run(),
// go backward, call EndBackward(), with several micro-batches again and again; then Finish(), let
// an ordinary optimizer update shards(), and call Changed(). All elements of a parameter get the
// same update from the optimizer whichever rank owns them, so that the result is that of DDP; with
// two ranks bit for bit.
//
// A parameter that no rank has used has a gradient of 0. One thread. All ranks of the group make
// the same calls. Methods throw what c10d throws. `group` must outlive it.
class ShardedParameters {
 public:
  // `units` in the order in which forward uses them, each parameter in one alone; it may be empty
  // where a stage has none. All ranks have the same values. Parameters that require no gradient are
  // left out by the caller. Throws as FlatUnit.
  ShardedParameters(std::vector<std::vector<NamedTensor>> units, Shard shard, Group& group);
  ~ShardedParameters();
  ShardedParameters(const ShardedParameters&) = delete;
  ShardedParameters& operator=(const ShardedParameters&) = delete;

  // Returns what `forward` does, which uses the parameters of unit number `unit` alone. Gathers
  // them before, and while it runs the next unit's.
  at::Tensor Run(std::size_t unit, const std::function<at::Tensor()>& forward);

  // After the backward pass of a micro-batch.
  void EndBackward();
  // After the last one of a step: the gradients of shards() are those of the mean over the ranks of
  // what they have computed, summed over micro-batches.
  void Finish();

  // The parts of parameters that this rank owns, under the names of the parameters. Each has as
  // many dimensions as its parameter, all but the last of size 1: the optimizer tells by them which
  // ones decay.
  const std::vector<NamedTensor>& shards() const { return shards_; }
  // They have changed: parameters are gathered when they are used next.
  void Changed();
  // Now.
  void GatherAll();

  // The sum of the squares of the gradients of `shards()`: this rank's share of the squared norm.
  double SquaredNorm() const;

  // Of tensors for each of shards(), such as averages: the whole ones, under the parameters' names.
  // Every rank calls it and gets all.
  std::vector<NamedTensor> Whole(const std::vector<NamedTensor>& of_shards) const;
  // What the optimizer of shards() keeps, whole, without its groups; every rank calls it and gets
  // all. And this rank's part of a whole one.
  std::vector<ParameterState> WholeState(const std::vector<ParameterState>& mine) const;
  std::vector<ParameterState> PartOfState(const std::vector<ParameterState>& whole) const;
  // Copies this rank's part of `whole`, tensors under the names of parameters, into `of_shards`,
  // tensors for each of shards().
  void TakePart(const std::vector<NamedTensor>& whole,
                const std::vector<NamedTensor>& of_shards) const;

  // What a rank sends in a step without accumulation: 2(n-1)/n of the bytes of all parameters, and
  // with kParameters 3(n-1)/n. ZeRO, section 7. Both count what fills units up as well.
  std::int64_t FormulaBytes() const;
  std::int64_t parameter_bytes() const;

 private:
  struct Unit;

  // Reduces the units whose gradients are complete, from the last to the first: on all ranks in the
  // same order.
  void ReduceComplete();
  void Reduce(Unit& unit);
  // A flat part of `unit` with the tensors of its slices, by name; zero where there is none.
  at::Tensor Packed(const Unit& unit,
                    const std::function<at::Tensor(const std::string&)>& find) const;
  at::Tensor SliceOf(const Unit& unit, const FlatSlice& slice, const at::Tensor& part) const;

  const Shard shard_;
  Group& group_;
  std::vector<std::unique_ptr<Unit>> units_;  // null where a stage has no parameters
  std::vector<NamedTensor> shards_;
  std::size_t reduced_from_ = 0;  // in this backward pass: units from here on are done
};

}  // namespace muster::trainer
