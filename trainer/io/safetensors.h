// Files in the format of https://github.com/huggingface/safetensors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/named_tensor.h"

namespace muster::trainer {

struct SafetensorsContents {
  std::vector<NamedTensor> tensors;             // on the CPU, dense, in the order of the file
  std::map<std::string, std::string> metadata;  // free text of whoever wrote the file
};

// kInvalidArgument when the file cannot be opened, is torn, or has a dtype that LibTorch 1.13
// lacks; kUnavailable when reading fails or there is no memory. The format has no checksum.
absl::StatusOr<SafetensorsContents> ReadSafetensors(const std::string& path);

// Writes `contents`, larger elements first so that each tensor is aligned. The file appears whole
// or not at all; at most one tensor at a time is copied. kInvalidArgument when a name occurs twice,
// is not UTF-8 or is "__metadata__", or a tensor has a dtype that Dtype lacks, and when the file
// cannot be made; kUnavailable when writing fails. What was at `path` is then untouched.
absl::Status WriteSafetensors(const SafetensorsContents& contents, const std::string& path);

}  // namespace muster::trainer
