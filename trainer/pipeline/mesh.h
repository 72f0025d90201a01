// Ranks arranged in three dimensions: pipeline x data x tensor.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::trainer {

// The dimensions of a mesh. Neighbours in a dimension cooperate: those of kTensor on every layer,
// those of kData on every gradient, those of kPipeline on every micro-batch.
enum class Dimension { kPipeline, kData, kTensor };
inline constexpr std::array<Dimension, 3> kDimensions = {Dimension::kPipeline, Dimension::kData,
                                                         Dimension::kTensor};

// As in --mesh: "pp", "dp" and "tp".
const char* ShortName(Dimension dimension);
// In sentences: "pipeline", "data" and "tensor".
const char* LongName(Dimension dimension);

// A rank's position, each from 0.
struct MeshPlace {
  int pipeline = 0;
  int data = 0;
  int tensor = 0;

  int Of(Dimension dimension) const;
  friend bool operator==(const MeshPlace&, const MeshPlace&) = default;
};

// How many ranks a mesh has in each dimension, at least 1. Ranks are numbered with the tensor
// dimension innermost: rank = (pipeline * data_size + data) * tensor_size + tensor. Launchers
// number ranks host by host, so neighbours in the tensor dimension, which exchange most and wait
// for it, share a host if its size divides the ranks per host; those in the pipeline dimension,
// which exchange least, are farthest apart. Narayanan et al., "Efficient Large-Scale Language Model
// Training on GPU Clusters Using Megatron-LM", SC 2021, takeaway 1.
struct Mesh {
  int pipeline = 1;
  int data = 1;
  int tensor = 1;

  int Of(Dimension dimension) const;
  int ranks() const { return pipeline * data * tensor; }
  MeshPlace PlaceOf(int rank) const;
  int RankOf(const MeshPlace& place) const;
  // `rank` and the ranks that differ from it only in `dimension`; ascending.
  std::vector<int> MembersOf(int rank, Dimension dimension) const;
  // One word, as for --mesh: "pp=2,dp=2,tp=1".
  std::string Text() const;

  friend bool operator==(const Mesh&, const Mesh&) = default;
};

// The mesh requested by the user.

// The value of --mesh.
struct MeshRequest {
  // Choose a mesh that suits the model and the ranks.
  bool choose = false;
  // Without `choose`: the given sizes. Missing sizes are 1, except the data dimension, which takes
  // all remaining ranks.
  std::optional<int> pipeline;
  std::optional<int> data;
  std::optional<int> tensor;

  friend bool operator==(const MeshRequest&, const MeshRequest&) = default;
};

// Parses "pp=2,dp=2,tp=2", any part of it in any order, or "auto". kInvalidArgument and one
// sentence for anything else.
absl::StatusOr<MeshRequest> ParseMeshRequest(const std::string& text);

// A model's constraints on a mesh.
struct MeshLimits {
  std::string model = "the model";  // its name in sentences
  // The tensor dimension must divide it: 1 if layers cannot be split.
  int tensor_divides = 1;
  // The name of that number in sentences: "attention heads".
  std::string tensor_divides_what = "parts that its layers can be split into";
  // The maximum of the pipeline dimension.
  int stages = 1;
};

// The mesh of `ranks` ranks according to `request`, without `choose`. kInvalidArgument and one
// sentence with the sizes that would fit, if the sizes do not multiply to the ranks or do not suit
// the model.
absl::StatusOr<Mesh> FitMesh(const MeshRequest& request, int ranks, const MeshLimits& limits);

// OK if `mesh` suits the model; else the sentence of FitMesh().
absl::Status CheckMesh(const Mesh& mesh, const MeshLimits& limits);

// Chooses a mesh for --mesh auto.

// The basis of a choice, in addition to the limits of the model.
struct MeshNeeds {
  std::vector<int> host_of_rank;  // a number for each host
  std::int64_t state_bytes = 0;   // parameters, their gradients and the optimizer's state
  std::int64_t memory_bytes = 0;  // available to a rank for them; 0: unknown, assumed sufficient
};

// Bytes of state on the fullest rank: tensor and pipeline ranks have equal parts of it, data ranks
// a complete copy each.
std::int64_t StateBytesOfRank(const Mesh& mesh, std::int64_t state_bytes);

// Whether each group of the tensor dimension is on one host.
bool TensorStaysInHosts(const Mesh& mesh, const std::vector<int>& host_of_rank);

// A mesh of all ranks, with as much in the data dimension as memory allows: gradients can be
// exchanged while others are computed, while the other dimensions make ranks wait for one another.
// If the state of the model is too large for a rank, it is divided among as few ranks as necessary,
// in the tensor dimension as far as its groups stay inside hosts, then in the pipeline dimension.
// The same on every rank; a job that has lost ranks gets the mesh that suits the rest.
// kInvalidArgument and one sentence, with the bytes, if no mesh of these ranks has enough memory.
absl::StatusOr<Mesh> ChooseMesh(const MeshNeeds& needs, const MeshLimits& limits);

// Prints the ranks' positions in a mesh at the start of a run.

// Bytes that a rank sends in a step, as the mean of all ranks, by Dimension; nullopt if unknown
// before the first step.
using DimensionBytes = std::array<std::optional<std::int64_t>, 3>;

// The ranks' positions, a line for each host, and the cost of each dimension:
//
//   mesh pp=2,dp=1,tp=2 of 4 ranks on 2 hosts
//     host a: rank 0 (pp 0, dp 0, tp 0), rank 1 (pp 0, dp 0, tp 1)
//     host b: rank 2 (pp 1, dp 0, tp 0), rank 3 (pp 1, dp 0, tp 1)
//     pipeline: 2 ranks on different hosts, 1.05 MB sent by a rank in a step
//     tensor: 2 ranks on one host, 4.19 MB sent by a rank in a step
//
// `host_of_rank` has a name for each rank's host. At most kMostHostLines hosts are listed. No
// newline at the end.
std::string MeshTable(const Mesh& mesh, const std::vector<std::string>& host_of_rank,
                      const DimensionBytes& bytes);
inline constexpr int kMostHostLines = 16;

// A sentence for each reason why the training will be slow: a group of the tensor dimension that
// spans hosts, with the bytes that leave a host. Empty if there is none.
std::vector<std::string> MeshWarnings(const Mesh& mesh,
                                      const std::vector<std::string>& host_of_rank,
                                      const DimensionBytes& bytes);

}  // namespace muster::trainer
