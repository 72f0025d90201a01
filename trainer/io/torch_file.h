// Files of torch.save and for torch.load.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/value.h"

namespace muster::trainer {

// Reads what torch.save wrote since PyTorch 1.6: state dicts, parameters, whole checkpoints with
// the state of optimizer and scheduler. Tensors are on the CPU whatever they were saved from;
// strides are kept, and those that shared a storage do so again. A Parameter is read as its tensor,
// which needs no gradient, and a set as a list; a torch.dtype or torch.device is read as its name.
// Nothing in the file is executed. Takes no more memory than the file has, and a few MB.
//
// kInvalidArgument when the file cannot be opened, is torn (each part has a checksum), or holds
// something else than the above; kUnavailable when reading fails or there is no memory.
absl::StatusOr<Value> ReadTorchFile(const std::string& path);

// Writes `value` to `path` so that torch.load(path) gives it, with weights_only=True, too (from
// PyTorch 2.0; that of 1.13 refuses floats). The file appears whole or not at all. Of each tensor
// the elements that it shows are written, densely, from the CPU; one that occurs several times (a
// tied weight) is written once. At most one tensor at a time is copied.
//
// kInvalidArgument, naming the entry, when a tensor has a dtype that Dtype lacks or the tree is
// deeper than 100, and when the file cannot be made; kUnavailable when writing fails. What was at
// `path` is then untouched.
absl::Status WriteTorchFile(const Value& value, const std::string& path);

}  // namespace muster::trainer
