// The format of every log line of Muster's programs: torch's own, so that a terminal to which both
// write reads as one.
#pragma once

namespace muster::base {

// For spdlog, whose logger bears the program's name: "W1121 16:54:02.337 18678 muster] round 0 is
// over: ...".
inline constexpr char kLogPattern[] = "%L%m%d %H:%M:%S.%e %P %n] %v";

}  // namespace muster::base
