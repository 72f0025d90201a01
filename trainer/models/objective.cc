#include "trainer/models/objective.h"

#include "absl/strings/str_format.h"

namespace muster::trainer {

std::string ValueText(const MetricValue& metric) {
  if (!metric.value) return "not measured";
  if (metric.is_share) return absl::StrFormat("%.2f %%", *metric.value * 100);
  return absl::StrFormat("%.4f", *metric.value);
}

}  // namespace muster::trainer
