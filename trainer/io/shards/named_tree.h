// A checkpoint without its tensors, as JSON.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"

#include "trainer/io/pickle/basic_value.h"

namespace muster::trainer {

// Stands for a tensor that is elsewhere.
struct TensorName {
  std::string name;

  bool operator==(const TensorName&) const = default;
};

using NamedTree = BasicValue<TensorName>;

// The tree as JSON from which exactly the same one comes back: the order of a dict, a tuple or a
// list, an int or a float, each digit. None, bools, numbers, texts and lists are JSON's own; all
// else is an object with one member, which says what it is:
//   {"dict": [[key, value], ...]}          the keys are texts or integers
//   {"ordered_dict": [[key, value], ...]}  a collections.OrderedDict
//   {"tuple": [value, ...]}
//   {"tensor": "conv1.weight"}
//   {"float": "nan"}                       "nan", "inf" or "-inf", for which JSON has no numbers
nlohmann::json TreeJson(const NamedTree& tree);

// The inverse. kInvalidArgument, with one clause, for anything else and for a tree deeper than 100.
absl::StatusOr<NamedTree> ReadTreeJson(const nlohmann::json& json);

}  // namespace muster::trainer
