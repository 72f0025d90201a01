// Writes parameters where Python finds them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

#include "trainer/named_tensor.h"

namespace muster::trainer {

// Writes `tensors` to `path` as torch.save(module.state_dict(), path) would: torch.load(path), also
// with weights_only=True, gives an OrderedDict of tensors in this order. The file appears whole or
// not at all. Only the elements a tensor shows are written, not the rest of the storage it is a
// view of; tensors are written from the CPU and load there. kInvalidArgument when the file cannot
// be made or a dtype has no name in that format, kUnavailable when writing fails.
absl::Status SaveStateDict(const std::vector<NamedTensor>& tensors, const std::string& path);

}  // namespace muster::trainer
