// The mesh of a run: chosen, checked, and connected.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/comm/group.h"
#include "trainer/comm/host/operation_log.h"
#include "trainer/comm/world.h"
#include "trainer/models/model.h"
#include "trainer/pipeline/mesh.h"

namespace muster::trainer {

// Where this rank is, and a group for each dimension: the ranks that differ from it there alone. A
// rank's number in a group is its place in that dimension. The world must outlive it.
struct MeshGroups {
  Mesh mesh;
  MeshPlace place;
  std::vector<std::string> hosts;  // the name of each rank's
  std::unique_ptr<Group> pipeline;
  std::unique_ptr<Group> data;
  std::unique_ptr<Group> tensor;

  const Group& of(Dimension dimension) const {
    return dimension == Dimension::kPipeline ? *pipeline
           : dimension == Dimension::kData   ? *data
                                             : *tensor;
  }
};

// What a mesh has to suit in `model`, whose name is `name`.
MeshLimits LimitsOf(const Model& model, const std::string& name);

// The mesh that options.parallel.mesh asks for, with groups. Every rank must call it.
// kInvalidArgument and one sentence when it does not suit the ranks, the model or the batch;
// kUnavailable when ranks do not come. Throws what c10d throws.
absl::StatusOr<MeshGroups> ConnectMesh(const Options& options, const Model& model, World& world);

// What a rank of a mesh sends in training, by dimension.

// Adds up what the groups of a mesh have counted in steps. One thread. The groups must outlive it.
class MeshTraffic {
 public:
  explicit MeshTraffic(const MeshGroups& groups) : groups_(groups) {}

  // While one exists, what is sent is for no step.
  class LeftOut {
   public:
    explicit LeftOut(MeshTraffic& traffic);
    ~LeftOut();
    LeftOut(const LeftOut&) = delete;
    LeftOut& operator=(const LeftOut&) = delete;

   private:
    MeshTraffic& traffic_;
    std::array<Traffic, kDimensions.size()> before_;  // by Dimension
  };

  // Of the run, which has had so many steps.
  Traffic Total(std::int64_t steps) const;
  // The same by dimension, those of one rank left out: {"tensor", ...}.
  std::vector<std::pair<std::string, Traffic>> ByDimension(std::int64_t steps) const;

 private:
  Traffic Of(Dimension dimension, std::int64_t steps) const;
  // In steps and outside of them.
  Traffic SentIn(Dimension dimension) const;

  const MeshGroups& groups_;
  std::array<Traffic, kDimensions.size()> left_out_{};  // by Dimension
};

// The memory that a process may count on.

// Bytes that all processes of this machine, or of this control group if it allows less, can still
// get: MemAvailable of /proc/meminfo, and memory.max less memory.current of the group and those
// above it; at least 1. 0 when the kernel does not say. `root` is where /proc and /sys are: empty,
// but in tests.
std::int64_t AvailableMemory(const std::string& root = "");

}  // namespace muster::trainer
