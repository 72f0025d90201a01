// Ranks in a block of three dimensions: pipeline x data x tensor.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace muster::trainer {

// In what two ranks of a mesh may differ. Neighbours in a dimension work together: those of kTensor
// on every layer, those of kData on every gradient, those of kPipeline on every micro-batch.
enum class Dimension { kPipeline, kData, kTensor };
inline constexpr std::array<Dimension, 3> kDimensions = {Dimension::kPipeline, Dimension::kData,
                                                         Dimension::kTensor};

// As in --mesh: "pp", "dp" and "tp".
const char* ShortName(Dimension dimension);
// In sentences: "pipeline", "data" and "tensor".
const char* LongName(Dimension dimension);

// Where a rank is, each from 0.
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
// for it, share a host when its size divides the ranks of a host; those in the pipeline dimension,
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
  // The ranks that differ from `rank` in `dimension` alone, and itself; ascending.
  std::vector<int> MembersOf(int rank, Dimension dimension) const;
  // One word, as for --mesh: "pp=2,dp=2,tp=1".
  std::string Text() const;

  friend bool operator==(const Mesh&, const Mesh&) = default;
};

}  // namespace muster::trainer
