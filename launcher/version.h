// The version that `--version` prints.
#pragma once

namespace muster::launcher {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace muster::launcher
