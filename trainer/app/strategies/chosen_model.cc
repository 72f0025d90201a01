#include "trainer/app/strategies/chosen_model.h"

#include "trainer/quant/qat_network.h"

namespace muster::trainer {

absl::StatusOr<std::unique_ptr<Model>> MakeChosenModel(const Options& options,
                                                       const at::Device& device) {
  if (options.fp16 && !device.is_cuda()) {
    return absl::InvalidArgumentError(
        "--fp16 computes on a GPU, and there is none: use --bf16, or neither");
  }
  absl::StatusOr<std::unique_ptr<Model>> model =
      MakeModel(options.qat.on ? QatRecipe(options.model) : options.model, options.shape,
                {.seed = options.seed,
                 .channels_last = options.channels_last,
                 .recompute = options.recompute});
  if (model.ok()) (*model)->MoveTo(device, options.dtype);
  return model;
}

}  // namespace muster::trainer
