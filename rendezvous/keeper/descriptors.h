// What a process that was forked, and goes on by itself, does to what it has inherited.
#pragma once

#include <span>

namespace muster::rendezvous {

// Closes every file descriptor but `kept`, which are in ascending order: none of the parent's pipes
// and connections is held open, whose other ends wait for an end. Allocates nothing and takes no
// lock. Before Linux 5.9, and where a filter forbids close_range, by what /proc/self/fd lists.
void CloseAllBut(std::span<const int> kept);

// For tests: the way of a kernel without close_range.
void CloseListedBut(std::span<const int> kept);

}  // namespace muster::rendezvous
