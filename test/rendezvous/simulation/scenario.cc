#include "test/rendezvous/simulation/scenario.h"

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Nodes {
  int min, max;
};
constexpr Nodes kNodes[] = {{1, 1}, {1, 2}, {1, 4}, {2, 2}, {2, 3}, {2, 6}, {3, 3}, {4, 4}, {3, 8}};
constexpr Duration kLastCalls[] = {milliseconds(0), milliseconds(100), seconds(1), seconds(4)};
constexpr Duration kJoinTimeouts[] = {seconds(2), seconds(5), seconds(10), seconds(30)};
constexpr Duration kLeases[] = {seconds(0), seconds(1), seconds(3), seconds(5)};
constexpr int kRestarts[] = {0, 1, 3, 10};
constexpr int kFaults[] = {20, 100, 300, 800};
constexpr int kFailures[] = {5, 30, 150};
constexpr Duration kAbsences[] = {milliseconds(500), seconds(3), seconds(15)};

}  // namespace

Scenario MakeScenario(Random& random) {
  Scenario scenario;
  const int jobs = 1 + static_cast<int>(random.Below(5));
  for (int i = 0; i < jobs; ++i) {
    Nodes nodes = random.OneOf(kNodes);
    if (jobs == 1) nodes = {6, 12};
    scenario.jobs.push_back({.min_nodes = nodes.min,
                             .max_nodes = nodes.max,
                             .last_call = random.OneOf(kLastCalls),
                             .join_timeout = random.OneOf(kJoinTimeouts),
                             .max_restarts = random.OneOf(kRestarts)});
  }
  scenario.lease = random.OneOf(kLeases);
  scenario.habits.failures_per_1000 = random.OneOf(kFailures);
  scenario.faults_per_10000 = random.OneOf(kFaults);
  scenario.slow_per_1000 = random.Chance(1, 4) ? 200 : 10;
  scenario.longest_delay = milliseconds(random.Chance(1, 2) ? 50 : 1500);
  scenario.longest_absence = random.OneOf(kAbsences);
  return scenario;
}

JoinRequest Scenario::RequestOf(int index, int incarnation, Random& random) const {
  const int job = static_cast<int>(random.Below(static_cast<std::int64_t>(jobs.size())));
  JoinRequest request{.run_id = absl::StrCat("j", job), .settings = jobs[job]};
  request.settings.lease = lease;
  // Somebody has mistyped --nnodes.
  if (random.Chance(1, 50)) ++request.settings.max_nodes;
  NodeInfo& node = request.node;
  node.node_id = absl::StrCat("n", index, "-", incarnation);
  node.host = absl::StrCat("n", index);
  node.address = absl::StrCat("10.0.0.", index);
  node.master_port = static_cast<std::uint16_t>(20'000 + incarnation % 10'000);
  node.slots = 1 + static_cast<int>(random.Below(4));
  if (job % 2 == 1) node.rank_hint = index;
  if (random.Chance(1, 4)) node.role = "evaluator";
  if (job % 3 == 2) node.topology = {absl::StrCat("rack-", index / 4)};
  return request;
}

}  // namespace muster::rendezvous
