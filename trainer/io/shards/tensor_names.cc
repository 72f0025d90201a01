#include "trainer/io/shards/tensor_names.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::trainer {

TensorNames::TensorNames(const Value& checkpoint) {
  const Value* optimizer = checkpoint.Find("optimizer");
  const Value* groups = optimizer != nullptr ? optimizer->Find("param_groups") : nullptr;
  if (groups == nullptr || groups->list() == nullptr) return;
  for (const Value& group : *groups->list()) {
    const Value* numbers = group.Find("params");
    const Value* names = group.Find("names");
    // What Python's optimizers write has no names: there the numbers remain.
    if (numbers == nullptr || numbers->list() == nullptr || names == nullptr ||
        names->list() == nullptr) {
      continue;
    }
    const std::size_t count = std::min(numbers->list()->size(), names->list()->size());
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t* number = (*numbers->list())[i].integer();
      const std::string* name = (*names->list())[i].string();
      if (number != nullptr && name != nullptr) parameters_[absl::StrCat(*number)] = *name;
    }
  }
}

std::string TensorNames::NameAt(const std::vector<std::string>& place) {
  std::string name;
  if (place.size() > 1 && place[0] == "model") {
    name = absl::StrJoin(place.begin() + 1, place.end(), ".");
  } else if (place.size() == 4 && place[0] == "optimizer" && place[1] == "state") {
    const auto parameter = parameters_.find(place[2]);
    name = absl::StrCat("optimizer.", place[3], ".",
                        parameter != parameters_.end() ? parameter->second : place[2]);
  } else {
    name = place.empty() ? "tensor" : absl::StrJoin(place, ".");
  }
  while (!taken_.insert(name).second) name += '_';
  return name;
}

}  // namespace muster::trainer
