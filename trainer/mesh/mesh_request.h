// The mesh that a user asks for.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "trainer/mesh/mesh.h"

namespace muster::trainer {

// What --mesh says.
struct MeshRequest {
  // Whatever suits the model and the ranks is to be chosen.
  bool choose = false;
  // Without `choose`: the sizes that were given. A size that was not is 1, but that of the data
  // dimension, which then takes all ranks that are left.
  std::optional<int> pipeline;
  std::optional<int> data;
  std::optional<int> tensor;

  friend bool operator==(const MeshRequest&, const MeshRequest&) = default;
};

// Reads "pp=2,dp=2,tp=2", any part of it in any order, or "auto". kInvalidArgument and one sentence
// for anything else.
absl::StatusOr<MeshRequest> ParseMeshRequest(const std::string& text);

// The sizes that a model can have: what a mesh must suit besides the number of ranks.
struct MeshLimits {
  std::string model = "the model";  // as it is called in sentences
  // The tensor dimension must divide it: 1 where layers cannot be split.
  int tensor_divides = 1;
  // What that number is, for sentences: "attention heads".
  std::string tensor_divides_what = "parts that its layers can be split into";
  // The most that the pipeline dimension can be.
  int stages = 1;
};

// The mesh of `ranks` ranks that `request`, without `choose`, asks for. kInvalidArgument and one
// sentence, which says which sizes would fit, when the sizes do not make up the ranks or do not
// suit the model.
absl::StatusOr<Mesh> FitMesh(const MeshRequest& request, int ranks, const MeshLimits& limits);

// OK when `mesh` suits the model; else the sentence of FitMesh().
absl::Status CheckMesh(const Mesh& mesh, const MeshLimits& limits);

}  // namespace muster::trainer
