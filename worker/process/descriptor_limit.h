// How many files the processes that we start may have open.
#pragma once

#include <sys/resource.h>

#include <optional>

namespace muster::worker {

// An agent that raises its own limit (RLIMIT_NOFILE) does not pass that on to its workers: a
// program that uses select() breaks with descriptors above 1023. Processes that are started from
// now on get `soft`, or the hard limit if that is lower; before this call they get our own limit.
// Main thread.
void SetDescriptorLimitOfWorkers(rlim_t soft);

// nullopt: they get our own limit.
std::optional<rlim_t> DescriptorLimitOfWorkers();

}  // namespace muster::worker
