// A kind of data set, as an entry of the registry.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"

#include "trainer/data/data_options.h"
#include "trainer/data/dataset.h"

namespace muster::trainer {

struct DataRecipe {
  std::string name;  // of --dataset: "idx"
  DataShape::Kind kind = DataShape::Kind::kImages;
  // What it is called when it reads no --data: "generated images". Empty: its name and --data.
  std::string title;
  // What is said when --data is needed and not given; empty: it is not needed.
  std::string needs_data;
  // Whether --test-data can name what to test on.
  bool reads_test_data = false;
  // Opens both splits, of the same shape and of `kind`. kInvalidArgument and one sentence when a
  // file is missing, damaged, of another kind or too small, or when an option is out of range.
  // Called once, on the main thread of each rank.
  std::function<absl::StatusOr<Splits>(const DataOptions&)> open;
};

// Opens the recipe's data set. Returns what recipe.open does; kInvalidArgument and one sentence
// when a split is missing or has no samples. Throws what recipe.open and the data set throw.
absl::StatusOr<Splits> OpenData(const DataRecipe& recipe, const DataOptions& options);

}  // namespace muster::trainer
