// A timeline as a trace for Perfetto and Chrome.
#pragma once

#include <string>

#include "launcher/replay/timeline.h"

namespace muster::launcher {

// The JSON object format of Chrome's trace events ("Trace Event Format", Google, 2016), one event
// per line, with times in microseconds since the timeline's origin.
//
// The first process is the job, with one thread for its rounds and one for its restarts by phase.
// Each node is a process, with a thread for its agent and one for each rank that it has had. Slices
// of a rank are its rounds; instants are incidents.
std::string TraceView(const Timeline& timeline);

}  // namespace muster::launcher
