#include "test/rendezvous/cluster/scenario.h"

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

struct Lease {
  Duration lease, keep_alive;
};
constexpr Lease kLeases[] = {{seconds(3), Duration::zero()},
                             {seconds(3), seconds(1)},
                             {seconds(1), Duration::zero()},
                             // An agent gives a connection up, which ends it at the daemon, long
                             // before its own lease ends.
                             {seconds(10), seconds(1)}};
constexpr Duration kLastCalls[] = {milliseconds(100), seconds(1), seconds(4)};
constexpr Duration kJoinTimeouts[] = {seconds(10), seconds(60), seconds(90)};
constexpr worker::StopLadder::Duration kGraces[] = {
    milliseconds(100), seconds(1),   seconds(5),
    seconds(30),       seconds(100), worker::StopLadder::kForever};
constexpr int kRestarts[] = {0, 1, 3, 10, 100};
constexpr int kFailures[] = {0, 100, 1000};
constexpr Duration kWork[] = {minutes(1), minutes(10), minutes(60)};

}  // namespace

Scenario MakeScenario(Random& random, int daemons) {
  Scenario scenario{.daemons = daemons};
  const int jobs = 2 + static_cast<int>(random.Below(4));
  for (int i = 0; i < jobs; ++i) {
    const int nodes = scenario.hosts / jobs;
    const int max = std::max(1, nodes - static_cast<int>(random.Below(3)));
    const int min = std::max(1, max - static_cast<int>(random.Below(3)));
    const Lease lease = random.OneOf(kLeases);
    JobPlan& plan = scenario.jobs.emplace_back();
    JobSettings& settings = plan.settings;
    settings = {.min_nodes = min,
                .max_nodes = max,
                .last_call = random.OneOf(kLastCalls),
                .join_timeout = random.OneOf(kJoinTimeouts),
                .lease = lease.lease,
                .keep_alive = lease.keep_alive,
                .max_restarts = random.OneOf(kRestarts)};
    if (random.Chance(1, 5)) settings.min_nodes = 1;
    if (random.Chance(1, 4)) {
      settings.exact_ranks = true;
      // One for each of its hosts.
      settings.max_nodes = (scenario.hosts - i + jobs - 1) / jobs;
      settings.min_nodes = settings.max_nodes;
    }
    plan.ladder.grace = random.OneOf(kGraces);
    if (random.Chance(1, 3)) plan.checks_health = true;
    if (random.Chance(1, 4)) settings.scale_up = ScaleUp::kNextRestart;
    if (random.Chance(1, 4)) {
      settings.restart = {.delay = milliseconds(500), .longest_delay = seconds(4)};
    }
  }
  scenario.failures_per_1000_minutes = random.OneOf(kFailures);
  scenario.ignores_term_per_100 = random.Chance(1, 2) ? 5 : 0;
  scenario.ends_slowly_per_100 = random.Chance(1, 2) ? 5 : 0;
  scenario.leaves_child_per_100 = random.Chance(1, 2) ? 20 : 0;
  scenario.work = random.OneOf(kWork);
  scenario.longest_outage = random.Chance(1, 4) ? seconds(120) : seconds(10);
  const std::int64_t kind = random.Below(10);
  scenario.durable = daemons > 1 || (kind != 0 && kind != 2 && kind != 3);
  scenario.only_daemon_dies = kind == 1 || kind == 4;
  if (scenario.only_daemon_dies) {
    scenario.failures_per_1000_minutes = 0;
    // All runs by the end of the quiet start.
    scenario.ignores_term_per_100 = 0;
    scenario.ends_slowly_per_100 = 0;
    scenario.work = minutes(100'000);
    scenario.longest_outage = seconds(120);
  }
  return scenario;
}

std::string Scenario::RunIdOf(int host) const {
  return absl::StrCat("j", host % static_cast<int>(jobs.size()));
}

const JobPlan& Scenario::JobOf(int host) const {
  return jobs[static_cast<std::size_t>(host) % jobs.size()];
}

JoinRequest Scenario::RequestOf(int host, int number) const {
  const std::size_t job = static_cast<std::size_t>(host) % jobs.size();
  JoinRequest request{.run_id = RunIdOf(host), .settings = jobs[job].settings};
  NodeInfo& node = request.node;
  node.node_id = absl::StrCat("n", host, "-", number);
  node.host = node.node_id;
  node.address = absl::StrCat("10.0.0.", host);
  node.master_port = static_cast<std::uint16_t>(20'000 + number % 10'000);
  node.slots = 1 + host % 3;
  if (host % 5 == 4) node.role = "evaluator";
  if (job % 3 == 2) node.topology = {absl::StrCat("rack-", host / 4)};
  if (job % 2 == 1) node.rank_hint = host;
  if (request.settings.exact_ranks) node.rank_hint = host / static_cast<int>(jobs.size());
  return request;
}

}  // namespace muster::rendezvous
