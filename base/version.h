// The version that all programs print, and that ranks of a training compare.
#pragma once

namespace muster::base {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace muster::base
