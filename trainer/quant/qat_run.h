// Quantization-aware training: its epochs, and ranks that observe together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/comm/group.h"
#include "trainer/quant/int8_network.h"
#include "trainer/quant/qat_network.h"
#include "trainer/quant/qat_options.h"

namespace muster::trainer {

// Takes a QatNetwork through a training whose steps are shared by the members of a group. One
// thread; the group must outlive it.
class QatRun {
 public:
  // `module` must be a QatNetwork. `epochs` are those of the whole training.
  QatRun(std::shared_ptr<torch::nn::Module> module, const QatOptions& options, std::int64_t epochs,
         Group& group);

  // What is done in epoch `epoch`, counted from 0.
  QatPhase PhaseOf(std::int64_t epoch) const;
  // Call it before the first step of an epoch, or of the rest of one.
  void BeginEpoch(std::int64_t epoch);
  // Call it after each step, on every member. Ranges become the widest of any member's: as each
  // moving average began the step alike, this is what one process would have observed of the whole
  // batch. Ranks are thus alike after every step, wherever a checkpoint is made. Throws what c10d
  // throws.
  void AfterStep();

  QatNetwork& network() const { return *network_; }
  // Null before anything is observed.
  std::unique_ptr<Int8Network> Convert() const;

 private:
  const std::shared_ptr<QatNetwork> network_;
  const QatOptions options_;
  const std::int64_t epochs_;
  Group& group_;
  QatPhase phase_ = QatPhase::kObserve;
};

// What the 8-bit network saves, as a line for the user: the bytes of weights, and the time that 256
// made-up samples of the shape `sample` take in both. Uses the processors for a second or so for
// each, and for as long as one pass takes if that is longer.
std::string CompareInference(QatNetwork& network, const Int8Network& int8,
                             const std::vector<std::int64_t>& sample);

}  // namespace muster::trainer
