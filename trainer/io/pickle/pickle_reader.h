// Reads the pickle in a file of torch.save.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/io/pickle/stored_value.h"

namespace muster::trainer {

struct PickleLimits {
  // Objects that the pickle makes, and values in the tree that comes out. A checkpoint has about 30
  // for each tensor.
  std::size_t objects = 4'000'000;
  // Of all strings in the tree that comes out; in the pickle a string is there once.
  std::size_t string_bytes = 256 << 20;
  std::size_t depth = 100;
};

struct PickledContents {
  StoredValue value;
  std::vector<Storage> storages;  // in the order of their first use
};

// Reads `pickle`, of protocol 2. Nothing in it is executed: it may name the classes and functions
// that state dicts, optimizers and schedulers consist of, and each is built here; any other is
// refused. Each tensor that comes out lies within its storage and has no more elements than it.
// What Python has and BasicValue has not becomes the nearest: a set a list, a Counter a dict,
// torch.Size a tuple, a dtype or device its name, a Parameter its tensor; an OrderedDict loses its
// attributes, which for a state dict is `_metadata`.
//
// kInvalidArgument, one clause, when the pickle is damaged, too large or has something else in it.
absl::StatusOr<PickledContents> ReadPickle(std::string_view pickle,
                                           const PickleLimits& limits = {});

}  // namespace muster::trainer
