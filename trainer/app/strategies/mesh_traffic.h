// What a rank of a mesh sends in training, by dimension.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/app/strategies/mesh_groups.h"
#include "trainer/comm/traffic.h"
#include "trainer/mesh/mesh.h"

namespace muster::trainer {

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

}  // namespace muster::trainer
