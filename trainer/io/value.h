// The contents of a checkpoint: Python values with LibTorch tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/io/pickle/basic_value.h"

namespace muster::trainer {

// See basic_value.h for the accessors. A complete checkpoint is one Value:
//
//   Dict checkpoint;
//   checkpoint.Set("model", StateDictValue(model.Parameters()));   // trainer/io/state_dict.h
//   checkpoint.Set("step", std::int64_t{1200});
//   WriteTorchFile(checkpoint, "run.pt");                          // trainer/io/torch_file.h
using Value = BasicValue<at::Tensor>;
using Dict = BasicDict<at::Tensor>;

}  // namespace muster::trainer
