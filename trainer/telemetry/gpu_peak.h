// How fast GPUs multiply at most.
#pragma once

#include <optional>
#include <string_view>

namespace muster::trainer {

// What the numbers are that a GPU multiplies.
enum class Multiplies { kHalf, kTf32, kFloat, kDouble };  // kHalf: float16 or bfloat16

// "bfloat16 or float16", "TensorFloat-32", "float32", "float64".
const char* MultipliesName(Multiplies kind);

// Dense multiplications and additions in a second, by the data sheet of the GPU that NVML calls
// `name` ("NVIDIA H100 80GB HBM3"); nullopt for one that is not known here, or that has no such
// units.
std::optional<double> PeakFlops(std::string_view name, Multiplies kind);

}  // namespace muster::trainer
