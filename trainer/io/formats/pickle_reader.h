// Reads the pickle in a file of torch.save.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/io/formats/value_tree.h"

namespace muster::trainer {

struct PickleLimits {
  // Objects that the pickle creates, and values in the resulting tree. A checkpoint has about 30
  // per tensor.
  std::size_t objects = 4'000'000;
  // Total size of the strings in the resulting tree. The pickle contains a repeated string once,
  // the tree several times.
  std::size_t string_bytes = 256 << 20;
  std::size_t depth = 100;
};

struct PickledContents {
  StoredValue value;
  std::vector<Storage> storages;  // in order of first use
};

// Reads `pickle`, of protocol 2. Executes nothing in it: it may refer only to the classes and
// functions that state dicts, optimizers and schedulers use, which are built here; any other is
// refused. Each resulting tensor lies within its storage and has no more elements than the storage.
// Python types that BasicValue lacks become the closest one: a set becomes a list, a Counter a
// dict, torch.Size a tuple, a dtype or device its name, a Parameter its tensor. An OrderedDict
// loses its attributes, such as a state dict's `_metadata`.
//
// kInvalidArgument, with one clause, when the pickle is damaged, too large or contains anything
// else.
absl::StatusOr<PickledContents> ReadPickle(std::string_view pickle,
                                           const PickleLimits& limits = {});

}  // namespace muster::trainer
