// A timeline as a trace for Perfetto and Chrome.
#pragma once

#include <string>

#include "launcher/replay/timeline.h"

namespace muster::launcher {

// The JSON object format of Chrome's trace events ("Trace Event Format", Google, 2016), one event
// to a line, times in microseconds since the timeline's origin.
//
// The first process is the job: a thread with its rounds, one with its restarts by phase. Each node
// is a process, with a thread for its agent, whose instants are what happened to it, and one for
// each rank that it has had. A rank's slices are the rounds in which it ran, and its instants what
// happened to it.
std::string TraceView(const Timeline& timeline);

}  // namespace muster::launcher
