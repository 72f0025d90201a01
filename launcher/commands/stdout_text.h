// What a command answers, on stdout.
#pragma once

#include <string>

namespace muster::launcher {

// Writes all of `text`, which may hold any bytes. When that fails, says so on stderr in the name of
// `command` ("muster ps") and returns false.
bool PrintOut(const char* command, const std::string& text);

}  // namespace muster::launcher
