// Whether two paths lead to one file.
#pragma once

#include <string>

namespace muster::trainer {

// False where one of them leads to none yet. Pipes and devices are files, too, but writing to one
// that is read from (a terminal) destroys nothing, so they are none here.
bool IsSameFile(const std::string& one, const std::string& other);

// Whether what is written to `path` goes where stdout goes.
bool IsStdout(const std::string& path);

}  // namespace muster::trainer
