// What a program can train, by name.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/data/data_recipe.h"
#include "trainer/models/model_recipe.h"
#include "trainer/recipe/recipe.h"

namespace muster::trainer {

// Each has a choice by flag where there is more than one.
struct Registry {
  std::string program = "muster-train";  // what it calls itself
  std::string default_data;              // the default of --data; empty: none
  std::vector<ModelRecipe> models;       // of --model; see DefaultModel
  // Of --dataset. Two may have one name if they are of different kinds. The first that is of the
  // model's kind is the default.
  std::vector<DataRecipe> data_sets;

  // The model of that name; null if there is none.
  const ModelRecipe* FindModel(const std::string& name) const;
  // The data set of that name, preferably of that kind; null if there is none. With an empty name
  // the default.
  const DataRecipe* FindDataSet(const std::string& name, DataShape::Kind kind) const;
  // The first model that takes tables, if the data set of that name is one; else the first model.
  const ModelRecipe& DefaultModel(const std::string& data_set) const;
  // Whether any model takes such data.
  bool Takes(DataShape::Kind kind) const;
};

// The models and data sets that come with muster-train. Each call makes new ones, which share
// nothing with those of another call.
Registry BuiltInRecipes();

// A registry of one model and one data set, with functions that say whose they are when they fail
// (Guarded). kInvalidArgument and one sentence when the recipe is not complete (CheckRecipe).
absl::StatusOr<Registry> RegistryOf(const Recipe& recipe, const std::string& program);

}  // namespace muster::trainer
