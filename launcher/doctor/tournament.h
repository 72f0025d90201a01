// Who measures with whom, and when: each host takes part in one measurement at a time.
#pragma once

#include <cstddef>
#include <vector>

namespace muster::launcher {

// A measurement: the host `from` connects to the host `to`. Numbers are those of the hosts' list.
struct Encounter {
  int from = 0;
  int to = 0;

  bool operator==(const Encounter&) const = default;
};

// Encounters that take place at the same time; no host is in two of them.
using Stage = std::vector<Encounter>;

// A tournament in which everybody meets everybody, first one way and then the other: of n hosts
// n-1 rounds (n, where n is odd), each of two stages. No more than `max_rounds` of them are held,
// so that each host then meets that many others.
std::vector<Stage> Tournament(const std::vector<int>& hosts, std::size_t max_rounds);

}  // namespace muster::launcher
