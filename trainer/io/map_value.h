// Walks a tree of Python values.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "trainer/io/pickle/basic_value.h"

namespace muster::trainer {

// Returns `tree` with each tensor replaced by what `convert` makes of it: an
// absl::StatusOr<BasicValue<To>>, given the tensor and its place, "['model']['weight']", behind
// `name`. Tensors come in the order of the tree. Its first error ends the walk, as does a tree
// deeper than 100, kInvalidArgument: the reader allows no deeper one.
template <typename To, typename From, typename Convert>
absl::StatusOr<BasicValue<To>> MapTensors(const BasicValue<From>& tree, Convert& convert,
                                          const std::string& name, int depth = 1) {
  if (depth > 100) {
    return absl::InvalidArgumentError("lists or dicts are within one another too deeply");
  }
  switch (tree.kind()) {
    case ValueKind::kNone:
      return BasicValue<To>();
    case ValueKind::kBool:
      return BasicValue<To>(*tree.boolean());
    case ValueKind::kInt:
      return BasicValue<To>(*tree.integer());
    case ValueKind::kFloat:
      return BasicValue<To>(*tree.floating());
    case ValueKind::kString:
      return BasicValue<To>(*tree.string());
    case ValueKind::kTensor:
      return convert(*tree.tensor(), name);
    case ValueKind::kList:
    case ValueKind::kTuple: {
      typename BasicValue<To>::List items;
      for (const BasicValue<From>& item : *tree.list()) {
        auto mapped =
            MapTensors<To>(item, convert, absl::StrCat(name, "[", items.size(), "]"), depth + 1);
        if (!mapped.ok()) return mapped.status();
        items.push_back(std::move(*mapped));
      }
      if (tree.kind() == ValueKind::kTuple) return BasicValue<To>::Tuple(std::move(items));
      return BasicValue<To>(std::move(items));
    }
    case ValueKind::kDict: {
      BasicDict<To> dict(tree.dict()->ordered());
      for (const auto& [key, item] : *tree.dict()) {
        auto mapped =
            MapTensors<To>(item, convert, absl::StrCat(name, "[", ToString(key), "]"), depth + 1);
        if (!mapped.ok()) return mapped.status();
        dict.Append(key, std::move(*mapped));
      }
      return BasicValue<To>(std::move(dict));
    }
  }
  std::abort();
}

}  // namespace muster::trainer
