#include "trainer/mesh/mesh_request.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace muster::trainer {
namespace {

constexpr int kLargest = 1'000'000;

std::vector<int> DivisorsOf(int number) {
  std::vector<int> divisors;
  for (int i = 1; i <= number; ++i) {
    if (number % i == 0) divisors.push_back(i);
  }
  return divisors;
}

// "tp=1", "tp=1 or 2", "tp=1, 2 or 4".
std::string Choice(Dimension dimension, const std::vector<int>& sizes) {
  std::string text = absl::StrCat(ShortName(dimension), "=", sizes[0]);
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    absl::StrAppend(&text, i + 1 == sizes.size() ? " or " : ", ", sizes[i]);
  }
  return text;
}

std::optional<int>* SizeIn(MeshRequest& request, absl::string_view name) {
  if (name == ShortName(Dimension::kPipeline)) return &request.pipeline;
  if (name == ShortName(Dimension::kData)) return &request.data;
  if (name == ShortName(Dimension::kTensor)) return &request.tensor;
  return nullptr;
}

}  // namespace

absl::StatusOr<MeshRequest> ParseMeshRequest(const std::string& text) {
  const auto bad = [&text](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--mesh ", text, ": ", why...,
        "; it is auto, or sizes of the pipeline, data and tensor dimensions, as pp=2,dp=2,tp=2"));
  };
  MeshRequest request;
  if (text == "auto") {
    request.choose = true;
    return request;
  }
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, '=');
    std::optional<int>* const size = SizeIn(request, sides[0]);
    if (size == nullptr) return bad("'", sides[0], "' is not a dimension");
    if (size->has_value()) return bad(sides[0], " is there twice");
    int value = 0;
    if (sides.size() != 2 || !absl::SimpleAtoi(sides[1], &value) || value < 1 || value > kLargest) {
      return bad(sides[0], " needs a whole number from 1 on");
    }
    *size = value;
  }
  return request;
}

absl::Status CheckMesh(const Mesh& mesh, const MeshLimits& limits) {
  if (limits.tensor_divides % mesh.tensor != 0) {
    const std::vector<int> fit = DivisorsOf(limits.tensor_divides);
    return absl::InvalidArgumentError(
        limits.tensor_divides == 1
            ? absl::StrCat("--mesh ", mesh.Text(), ": the layers of ", limits.model,
                           " cannot be split over ranks; take tp=1")
            : absl::StrCat("--mesh ", mesh.Text(), ": the ", limits.tensor_divides, " ",
                           limits.tensor_divides_what, " of ", limits.model,
                           " cannot be shared evenly by ", mesh.tensor, " ranks; take ",
                           Choice(Dimension::kTensor, fit)));
  }
  if (mesh.pipeline > limits.stages) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--mesh ", mesh.Text(), ": ", limits.model, " can be cut into ", limits.stages,
        " stages at most, and not into ", mesh.pipeline, "; take pp=", limits.stages, " or less"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Mesh> FitMesh(const MeshRequest& request, int ranks, const MeshLimits& limits) {
  Mesh mesh = {.pipeline = request.pipeline.value_or(1), .tensor = request.tensor.value_or(1)};
  // Sizes may be large: their product is not taken before each has been found to divide the ranks.
  const std::int64_t others = std::int64_t{mesh.pipeline} * mesh.tensor;
  if (ranks % others != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--mesh: pp=", mesh.pipeline, " times tp=", mesh.tensor, " is ", others,
        ", which does not divide the ", ranks, " ranks of this job; the product must be one of ",
        absl::StrJoin(DivisorsOf(ranks), ", ")));
  }
  mesh.data = static_cast<int>(ranks / others);
  if (request.data && *request.data != mesh.data) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--mesh pp=", mesh.pipeline, ",dp=", *request.data, ",tp=", mesh.tensor, ": that is ",
        others * *request.data, " ranks, and this job has ", ranks, "; take dp=", mesh.data,
        ", leave it out, or start ", others * *request.data, " ranks"));
  }
  const absl::Status suits = CheckMesh(mesh, limits);
  if (!suits.ok()) return suits;
  return mesh;
}

}  // namespace muster::trainer
