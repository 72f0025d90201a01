#include "launcher/doctor/tournament.h"

#include <algorithm>

namespace muster::launcher {

std::vector<Stage> Tournament(const std::vector<int>& hosts, std::size_t max_rounds) {
  std::vector<Stage> stages;
  if (hosts.size() < 2) return stages;
  constexpr int kNobody = -1;
  // The circle method: the first stays, the others move on by one place in each round, and those
  // who face each other meet.
  std::vector<int> circle = hosts;
  if (circle.size() % 2 != 0) circle.push_back(kNobody);
  const std::size_t rounds = std::min(circle.size() - 1, max_rounds);
  for (std::size_t round = 0; round < rounds; ++round) {
    Stage there;
    Stage back;
    for (std::size_t i = 0; i < circle.size() / 2; ++i) {
      const int one = circle[i];
      const int other = circle[circle.size() - 1 - i];
      if (one == kNobody || other == kNobody) continue;
      there.push_back({one, other});
      back.push_back({other, one});
    }
    stages.push_back(std::move(there));
    stages.push_back(std::move(back));
    std::rotate(circle.begin() + 1, circle.end() - 1, circle.end());
  }
  return stages;
}

}  // namespace muster::launcher
