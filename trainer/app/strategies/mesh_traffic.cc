#include "trainer/app/strategies/mesh_traffic.h"

#include <optional>

#include "trainer/comm/group.h"

namespace muster::trainer {
namespace {

std::optional<std::int64_t> AddedUp(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

}  // namespace

MeshTraffic::LeftOut::LeftOut(MeshTraffic& traffic) : traffic_(traffic) {
  for (const Dimension dimension : kDimensions) {
    before_[static_cast<std::size_t>(dimension)] = traffic.SentIn(dimension);
  }
}

MeshTraffic::LeftOut::~LeftOut() {
  for (const Dimension dimension : kDimensions) {
    const auto index = static_cast<std::size_t>(dimension);
    Traffic& total = traffic_.left_out_[index];
    const Traffic sent = traffic_.SentIn(dimension).Since(before_[index]);
    total.formula_bytes += sent.formula_bytes;
    total.counted_bytes = total.counted_bytes.value_or(0) + sent.counted_bytes.value_or(0);
  }
}

Traffic MeshTraffic::SentIn(Dimension dimension) const {
  const Group& group = groups_.of(dimension);
  Traffic total = {.counted_bytes = 0};
  for (const Use use : {Use::kGradients, Use::kParameters, Use::kActivations}) {
    const Traffic one = group.traffic(use);
    total.formula_bytes += one.formula_bytes;
    // What was not used at all need not be counted.
    if (one.formula_bytes > 0) {
      total.counted_bytes = AddedUp(total.counted_bytes, one.counted_bytes);
    }
  }
  return total;
}

Traffic MeshTraffic::Of(Dimension dimension, std::int64_t steps) const {
  Traffic total = SentIn(dimension);
  const Traffic& left_out = left_out_[static_cast<std::size_t>(dimension)];
  total.steps = steps;
  total.formula_bytes -= left_out.formula_bytes;
  if (total.counted_bytes) *total.counted_bytes -= left_out.counted_bytes.value_or(0);
  return total;
}

Traffic MeshTraffic::Total(std::int64_t steps) const {
  Traffic total = {.steps = steps, .counted_bytes = 0};
  for (const Dimension dimension : kDimensions) {
    const Traffic one = Of(dimension, steps);
    total.formula_bytes += one.formula_bytes;
    total.counted_bytes = AddedUp(total.counted_bytes, one.counted_bytes);
  }
  return total;
}

std::vector<std::pair<std::string, Traffic>> MeshTraffic::ByDimension(std::int64_t steps) const {
  std::vector<std::pair<std::string, Traffic>> all;
  for (const Dimension dimension : kDimensions) {
    if (groups_.mesh.Of(dimension) > 1) all.emplace_back(LongName(dimension), Of(dimension, steps));
  }
  return all;
}

}  // namespace muster::trainer
