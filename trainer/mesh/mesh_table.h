// Says at the start of a run which rank is where in a mesh.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/mesh/mesh.h"

namespace muster::trainer {

// Bytes that a rank sends in a step, as the mean of all ranks, by Dimension; nullopt where they are
// not known before the first step.
using DimensionBytes = std::array<std::optional<std::int64_t>, 3>;

// The ranks' places, a line for each host, and what each dimension costs:
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

// A sentence for each thing that will make the training slow: a group of the tensor dimension that
// is not on one host, with the bytes that leave it. Empty when nothing will.
std::vector<std::string> MeshWarnings(const Mesh& mesh,
                                      const std::vector<std::string>& host_of_rank,
                                      const DimensionBytes& bytes);

}  // namespace muster::trainer
