#include "trainer/models/recipe.h"

namespace muster::trainer {

const std::vector<std::int64_t>* FindShape(const TensorShapes& shapes, const std::string& name,
                                           std::size_t dimensions) {
  const auto found = shapes.find(name);
  return found != shapes.end() && found->second.size() == dimensions ? &found->second : nullptr;
}

absl::Status CheckImageShape(const DataShape& shape) {
  for (const std::int64_t size : {shape.channels, shape.height, shape.width, shape.classes}) {
    if (size >= 1) continue;
    return absl::InvalidArgumentError("images and classes must have a size of at least 1");
  }
  return absl::OkStatus();
}

}  // namespace muster::trainer
