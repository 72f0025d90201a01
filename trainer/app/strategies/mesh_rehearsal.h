// What ranks that share a model will send, found before the first step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/app/options/options.h"
#include "trainer/models/model.h"
#include "trainer/parallel/tensor_group_links.h"

namespace muster::trainer {

// A sample as the model takes them, of zeros: B = 1. Not defined when only a recipe knows how they
// look.
at::Tensor SomeInputs(const Options& options, const Model& model);

// Takes one sample of zeros through a model, first whole and then in parts. One thread.
class MeshRehearsal {
 public:
  // Takes it through the stages of `model`, which is whole. nullopt when it cannot be known how
  // samples look, or stages refuse zeros.
  static std::optional<MeshRehearsal> Of(const Options& options, Model& model);

  // Bytes that go from the stage before `stage` to it for a sample, and back as its gradient. With
  // `parts`, a rank has such a part of them.
  std::int64_t BytesInto(std::size_t stage, int parts = 1) const;
  // Bytes that a rank sends over `links` for a sample, forward and backward through the stages of
  // `range` of `model`, which is split over these. Nothing is sent meanwhile, and the model is left
  // as it was. nullopt when the stages refuse zeros.
  std::optional<std::int64_t> BytesBetweenParts(Model& model, const StageRange& range,
                                                TensorGroupLinks& links) const;

 private:
  explicit MeshRehearsal(const Options& options);

  const DataShape shape_;
  const Objective objective_;
  const std::optional<c10::ScalarType> autocast_;
  std::vector<at::Tensor> inputs_;  // of each stage
};

}  // namespace muster::trainer
