// The version that all programs print. Ranks of a training compare it.
#pragma once

namespace muster::base {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace muster::base
