// Where an agent says what it has to say itself, apart from what its workers print.
#pragma once

#include <optional>

#include "launcher/environment.h"

namespace muster::launcher {

// Where a launch tree has started the agent, the tree carries what many agents say to one terminal,
// and must know whose it is: the agent's log and its report go to the descriptor that this variable
// names. Everybody else's agent has neither and says it on stderr.
inline constexpr char kSpeechVariable[] = "MUSTER_SPEECH_FD";

// Stands before the report, the last thing that is said.
inline constexpr char kReportMark = '\f';

// The descriptor, where the variable names one that is open. The variable is taken out: workers do
// not have the descriptor.
std::optional<int> TakeSpeechFd(Environment& environment);

}  // namespace muster::launcher
