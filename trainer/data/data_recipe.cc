#include "trainer/data/data_recipe.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::trainer {

absl::StatusOr<Splits> OpenData(const DataRecipe& recipe, const DataOptions& options) {
  absl::StatusOr<Splits> splits = recipe.open(options);
  if (!splits.ok()) return splits;
  const std::pair<const Dataset*, const char*> both[] = {{splits->train.get(), "training"},
                                                         {splits->test.get(), "test"}};
  for (const auto& [data, use] : both) {
    const auto bad = [&, name = use](const char* why) {
      return absl::InvalidArgumentError(
          absl::StrCat("open data set ", recipe.name, ": ", name, " data ", why));
    };
    if (data == nullptr) return bad("is missing (a null pointer in Splits)");
    if (data->size() < 1) return bad("has no samples");
  }
  return splits;
}

}  // namespace muster::trainer
