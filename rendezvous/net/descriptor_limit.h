// How many files and connections this process may have open.
#pragma once

#include <sys/resource.h>

#include <optional>

namespace muster::rendezvous {

// Raises the soft limit (RLIMIT_NOFILE), which login shells and containers leave at 1024 for the
// sake of select(), to the hard one, but to no more than 131,072: one for each agent of any job
// there is, while a flood of connections cannot take more memory than those need. Returns the
// former limit if it was raised: programs that this process starts should get that one.
std::optional<rlim_t> RaiseDescriptorLimit();

}  // namespace muster::rendezvous
