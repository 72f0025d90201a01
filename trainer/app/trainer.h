// One rank's part of the training, from the first step to the checkpoint.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

#include "trainer/app/options.h"
#include "trainer/app/progress.h"
#include "trainer/app/summary.h"
#include "trainer/core/environment.h"
#include "trainer/data/image_set.h"
#include "trainer/dist/process_group.h"

namespace muster::trainer {

// Trains one model with the other ranks of `group`. The same options, seed included, give the same
// losses whatever the number of ranks, but for rounding: every step takes the same images, and its
// gradient is their mean.
class Trainer {
 public:
  // Makes the model, the same on every rank. `group` and `progress` must outlive this object.
  // Throws what c10d throws.
  Trainer(const Options& options, const Environment& env, TrainAndTest data, ProcessGroup& group,
          Progress& progress);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Trains, evaluates, and on rank 0 writes progress, loss log and checkpoint. Returns when every
  // rank is done. To be called once. kUnavailable, with the step, when a peer is lost or a file
  // cannot be written; the group is of no more use then.
  absl::StatusOr<Summary> Run();

 private:
  struct Parts;

  void TrainEpoch(int epoch);
  // The share of the test images that the model gets right, over all ranks.
  double Evaluate();

  const std::unique_ptr<Parts> parts_;
};

}  // namespace muster::trainer
