// The turns of phrase that sentences for people are built from, so that the same thing is said in
// the same words on status page, log and terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// "1 node", "3 nodes".
std::string Count(std::size_t n, const char* noun);

// "600 s", "3.2 s", "250 ms", whole seconds from ten on; nothing below zero is shown.
std::string Seconds(Duration duration);

// The items with commas, cut after eight: "a, b, c, d, e, f, g, h and 56 more".
std::string ShortList(const std::vector<std::string>& items);
// The same of `count` items, of which nine, or all if there are fewer, are given.
std::string ShortList(const std::vector<std::string>& first, std::size_t count);

// When nodes said which rank they want: " (missing: node ranks 1, 3)" for those of 0..max_nodes-1
// that nobody asked for. Empty when no node said so, or when none is missing.
std::string MissingHints(const std::vector<NodeInfo>& joined, int max_nodes);

// "rank 3 on host b exited with code 3".
std::string DescribeFailure(const WorkerFailure& failure);

}  // namespace muster::rendezvous
