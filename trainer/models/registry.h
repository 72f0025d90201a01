// The models and data sets of a program, by name.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/data/datasets.h"
#include "trainer/models/recipe.h"

namespace muster::trainer {

// Each list has a flag for choosing if it has more than one entry.
struct Registry {
  std::string program = "muster-train";  // the program's name
  std::string default_data;              // the default of --data; empty: none
  std::vector<ModelRecipe> models;       // of --model; see DefaultModel
  // For --dataset. Two may have the same name if their kinds differ. The first of the model's kind
  // is the default.
  std::vector<DataRecipe> data_sets;

  // The model of that name; null if there is none.
  const ModelRecipe* FindModel(const std::string& name) const;
  // The data set of that name, preferably of that kind; null if there is none. The default for an
  // empty name.
  const DataRecipe* FindDataSet(const std::string& name, DataShape::Kind kind) const;
  // The first model that takes tables, if the data set of that name is one; else the first model.
  const ModelRecipe& DefaultModel(const std::string& data_set) const;
  // Whether any model takes such data.
  bool Takes(DataShape::Kind kind) const;
};

// The models and data sets that come with muster-train. Each call creates new ones, which share
// nothing with those of another call.
Registry BuiltInRecipes();

// A registry of one model and one data set, whose functions name themselves in errors (Guarded).
// kInvalidArgument and one sentence if the recipe is incomplete (CheckRecipe).
absl::StatusOr<Registry> RegistryOf(const Recipe& recipe, const std::string& program);

}  // namespace muster::trainer
