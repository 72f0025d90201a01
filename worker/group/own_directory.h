// The directory that one worker has to itself for its logs and its error file.
//
// It is made and removed beside its worker's start and end rather than with those of all the others
// before and after them: on ext4 either costs some 60 us, which is the time that the other
// processors have for the workers that run already.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace muster::worker {

// Makes it, for this user only: workers print secrets. One that is there already will do, as a
// start may be tried again. kFailedPrecondition names the directory and the cause.
absl::Status MakeOwnDirectory(const std::string& directory);

// Removes it unless something is in it.
void RemoveIfEmpty(const std::string& directory);

}  // namespace muster::worker
