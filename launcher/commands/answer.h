// What a command was asked to print, and the exit code that follows.
#pragma once

#include <string>

namespace muster::launcher {

// Writes all of `text` to stdout in the name of `command` ("muster ps"). kExitSuccess, or, once
// stderr says why that failed, kExitNodeFailed.
int Answer(const char* command, const std::string& text);

}  // namespace muster::launcher
