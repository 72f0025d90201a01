// What a forked process that lives on by itself does to the descriptors it has inherited.
#pragma once

#include <span>

namespace muster::rendezvous {

// Closes every file descriptor except `kept`, which are in ascending order, so that none of the
// parent's pipes and connections is held open while its other end waits for it to close. Allocates
// nothing and takes no lock. Before Linux 5.9, and where a filter forbids close_range, it uses the
// list in /proc/self/fd.
void CloseAllBut(std::span<const int> kept);

// For tests: the way it is done without close_range.
void CloseListedBut(std::span<const int> kept);

}  // namespace muster::rendezvous
