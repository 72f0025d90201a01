// A command's answer, on stdout.
#pragma once

#include <string>

namespace muster::base {

// Writes all of `text`, which may hold any bytes. If that fails, says so on stderr in the name of
// `command` ("muster ps") and returns false.
bool PrintOut(const char* command, const std::string& text);

}  // namespace muster::base
