// Reads torch.save files and writes files for torch.load.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/formats/files.h"
#include "trainer/io/state_dict.h"

namespace muster::trainer {

// Reads files that torch.save has written since PyTorch 1.6: state dicts, parameters, full
// checkpoints with optimizer and scheduler state. All tensors end up on the CPU; strides are kept,
// and tensors that shared a storage share it again. A Parameter becomes its tensor, without
// gradient, a set becomes a list, and a torch.dtype or torch.device becomes its name. Nothing in
// the file is executed. Memory use is at most the size of the file plus a few MB.
//
// kInvalidArgument when the file cannot be opened, is damaged (each part has a checksum), or
// contains anything else; kUnavailable when reading fails or memory runs out.
absl::StatusOr<Value> ReadTorchFile(const std::string& path);

// The same for a file's contents in memory: `bytes` is a dense uint8 tensor on the CPU. The value's
// tensors are views of it and keep it alive; only those that are not aligned in it are copied.
// `bytes` must not be changed while the value is in use. Errors do not name a file.
absl::StatusOr<Value> ReadTorchBytes(const at::Tensor& bytes);

// Whether ReadTorchFile could read `path`. Reads all of it in small pieces and keeps nothing.
// Errors as ReadTorchFile.
absl::Status CheckTorchFile(const std::string& path);

// Writes `value` to `path` so that torch.load(path) returns it, also with weights_only=True since
// PyTorch 2.0 (1.13's refuses floats). The file appears complete or not at all. Only the elements
// that a tensor shows are written, densely, as a CPU tensor; a tensor that occurs several times (a
// tied weight) is written once. Copies at most one tensor at a time.
//
// kInvalidArgument when a tensor is not dense or has a dtype that Dtype lacks (with its name), when
// the tree is deeper than 100, or when the file cannot be created; kUnavailable when writing fails.
// An existing file is then untouched (but see DurableFile::Commit).
absl::Status WriteTorchFile(const Value& value, const std::string& path,
                            Folder folder = Folder::kOfUser);

}  // namespace muster::trainer
