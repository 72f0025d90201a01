// Writes the pickle in a file of torch.save.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/io/pickle/stored_value.h"

namespace muster::trainer {

// Pickles `value`, whose tensors are views into `storages`, as torch.save does, with protocol 2.
// Writes each object in full where it occurs, without references to earlier ones, so that equal
// values give equal bytes. kInvalidArgument, with one clause, when the tree is deeper than 100 or a
// string is longer than 4 GiB.
absl::StatusOr<std::string> WritePickle(const StoredValue& value,
                                        const std::vector<Storage>& storages);

}  // namespace muster::trainer
