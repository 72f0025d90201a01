// What this machine's kernel has to offer.
#pragma once

#include "absl/status/status.h"

namespace muster::base {

// FailedPrecondition, in one line, when the kernel or the filter of a container lacks what Muster
// watches processes with: pidfd_open(), and waitid() for its result, of Linux 5.4. Newer calls have
// replacements where they are used. Two system calls.
absl::Status CheckKernel();

}  // namespace muster::base
