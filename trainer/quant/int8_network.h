// A network that computes in 8-bit numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/quant/qat_network.h"

namespace muster::trainer {

// What a QatNetwork converts to, by its weights and ranges of this moment: the results differ from
// what it computes in evaluation by rounding alone, which is a step of the output's scale or so
// where the processor adds products of 8-bit numbers without loss (VNNI). Uses LibTorch's oneDNN
// layers, or what else there is. On the CPU; calls may come from any thread, one at a time.
class Int8Network {
 public:
  // Everything must be observed. Throws what LibTorch throws.
  explicit Int8Network(const QatNetwork& network);
  ~Int8Network();
  Int8Network(const Int8Network&) = delete;
  Int8Network& operator=(const Int8Network&) = delete;

  // The scores of `inputs`, which are floats as those of a model are; the result is, too.
  at::Tensor Forward(const at::Tensor& inputs) const;

  // The step of its outputs: how far two neighbouring ones are from each other.
  double output_step() const;

 private:
  struct Layer;
  struct Block;
  double scale_ = 1;
  std::int64_t zero_point_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace muster::trainer
