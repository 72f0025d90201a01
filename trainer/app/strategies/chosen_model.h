// The model that the user has chosen.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/models/model.h"

namespace muster::trainer {

// Makes options.model for options.shape, on `device` and of type options.dtype. Errors as
// MakeModel; kInvalidArgument, too, when the device does not compute in the type asked for.
absl::StatusOr<std::unique_ptr<Model>> MakeChosenModel(const Options& options,
                                                       const at::Device& device);

}  // namespace muster::trainer
