#include "trainer/telemetry/gpu_peak.h"

#include <initializer_list>

namespace muster::trainer {
namespace {

// In 10^12; 0: it has none. From NVIDIA's data sheets, without sparsity, with tensor cores where
// they have them.
struct Peak {
  std::string_view name;  // a part of it
  double half;
  double tf32;
  double single;
  double twice;  // float64
};

// The first that fits counts.
constexpr Peak kPeaks[] = {{"H200", 989.5, 494.7, 66.9, 66.9}, {"H100 PCIe", 756, 378, 51, 51},
                           {"H100", 989.5, 494.7, 66.9, 66.9}, {"A100", 312, 156, 19.5, 19.5},
                           {"L40S", 362, 183, 91.6, 1.4},      {"L4", 121, 60, 30.3, 0.5},
                           {"A10", 125, 62.5, 31.2, 0.5},      {"V100-SXM2", 125, 0, 15.7, 7.8},
                           {"Tesla T4", 65, 0, 8.1, 0.25}};

}  // namespace

const char* MultipliesName(Multiplies kind) {
  switch (kind) {
    case Multiplies::kHalf:
      return "bfloat16 or float16";
    case Multiplies::kTf32:
      return "TensorFloat-32";
    case Multiplies::kFloat:
      return "float32";
    case Multiplies::kDouble:
      return "float64";
  }
  return "";
}

std::optional<double> PeakFlops(std::string_view name, Multiplies kind) {
  for (const Peak& peak : kPeaks) {
    const std::size_t place = name.find(peak.name);
    if (place == std::string_view::npos) continue;
    // Not the beginning of another name.
    const std::size_t end = place + peak.name.size();
    if (end < name.size() && name[end] != ' ' && name[end] != '-') continue;
    const double trillions = kind == Multiplies::kHalf    ? peak.half
                             : kind == Multiplies::kTf32  ? peak.tf32
                             : kind == Multiplies::kFloat ? peak.single
                                                          : peak.twice;
    return trillions > 0 ? std::optional(trillions * 1e12) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace muster::trainer
