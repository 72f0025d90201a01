// Quantization-aware training: its epochs, and observation across ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/quant/qat_network.h"
#include "trainer/quant/qat_options.h"

namespace muster::trainer {

// A network that computes in 8-bit numbers.

// The conversion of a QatNetwork, with its current weights and ranges: the results differ from its
// evaluation only by rounding, about one step of the output's scale if the processor adds products
// of 8-bit numbers exactly (VNNI). Uses LibTorch's oneDNN layers, or another engine if there is
// none. On the CPU; calls may come from any thread, one at a time.
class Int8Network {
 public:
  // Every range must have been observed. Throws what LibTorch throws.
  explicit Int8Network(const QatNetwork& network);
  ~Int8Network();
  Int8Network(const Int8Network&) = delete;
  Int8Network& operator=(const Int8Network&) = delete;

  // The scores of `inputs`; both are floats, as with a model.
  at::Tensor Forward(const at::Tensor& inputs) const;

  // The step of its outputs: the distance of two neighbouring values.
  double output_step() const;

 private:
  struct Layer;
  struct Block;
  double scale_ = 1;
  std::int64_t zero_point_ = 0;
  std::vector<Block> blocks_;
};

// Runs the phases of a QatNetwork's training, whose steps are shared by the members of a group. One
// thread; the group must outlive it.
class QatRun {
 public:
  // `module` must be a QatNetwork. `epochs`: of the whole training.
  QatRun(std::shared_ptr<torch::nn::Module> module, const QatOptions& options, std::int64_t epochs,
         Group& group);

  // The phase in epoch `epoch`, counted from 0.
  QatPhase PhaseOf(std::int64_t epoch) const;
  // Call it before the first step of an epoch, also after resuming within one.
  void BeginEpoch(std::int64_t epoch);
  // Call it after each step, on every member. Widens ranges to the widest of any member: as all
  // moving averages were equal before the step, this is what one process would have observed over
  // the whole batch. So ranks are equal after every step, wherever a checkpoint is made. A member's
  // observations are ignored unless it `counts`: it had no samples of its own. Throws what c10d
  // throws.
  void AfterStep(bool counts = true);

  QatNetwork& network() const { return *network_; }
  // Null before a range has been observed.
  std::unique_ptr<Int8Network> Convert() const;

 private:
  const std::shared_ptr<QatNetwork> network_;
  const QatOptions options_;
  const std::int64_t epochs_;
  Group& group_;
  QatPhase phase_ = QatPhase::kObserve;
};

// A line for the user about what the 8-bit network saves: the bytes of weights, and the time for
// 256 artificial samples of the shape `sample` in both. Uses the processors for about a second
// each, or for one pass if that takes longer.
std::string CompareInference(QatNetwork& network, const Int8Network& int8,
                             const std::vector<std::int64_t>& sample);

}  // namespace muster::trainer
