#include "test/rendezvous/cluster/cluster.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "test/rendezvous/cluster/chaos.h"
#include "test/rendezvous/cluster/daemon.h"
#include "test/rendezvous/cluster/host.h"
#include "test/rendezvous/cluster/scenario.h"
#include "test/rendezvous/cluster/several_daemons.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A node whose end was never told is lost after its lease, which a daemon that has just been
// restarted makes longer; then a round gathers, for its join timeout at most, and its workers stop
// and start. A job may end by that, and be begun anew by those who came too late.
constexpr Duration kHealTime = seconds(350);
constexpr Duration kFinishTime = seconds(350);
// How long all have to be there before only the daemon dies.
constexpr Duration kQuietStart = seconds(100);

// Tasks of one instant, all hosts together.
constexpr int kMostAtOnce = 100'000;

class Cluster {
 public:
  explicit Cluster(const ClusterOptions& options)
      : options_(options),
        random_(options.seed),
        scenario_(MakeScenario(random_, options.daemons)),
        trace_(options.trace),
        network_(scheduler_, random_, scenario_.hosts, scenario_.daemons),
        disk_(scheduler_, random_, incidents_),
        checks_(violations_, incidents_, disk_),
        world_{scheduler_, random_, network_, checks_, incidents_, trace_},
        daemons_(MakeDaemons()),
        chaos_(world_, scenario_, *daemons_, hosts_) {
    habits_ = {.failures_per_1000_minutes = scenario_.failures_per_1000_minutes,
               .ignores_term_per_100 = scenario_.ignores_term_per_100,
               .ends_slowly_per_100 = scenario_.ends_slowly_per_100,
               .leaves_child_per_100 = scenario_.leaves_child_per_100,
               .work = scenario_.work};
    disk_.on_durable = [this](const std::string& run_id, const JobRecord* job) {
      checks_.durability.OnDurable(run_id, job);
    };
    if (!scenario_.durable) checks_.rounds.DaemonForgets();
    for (int i = 0; i < scenario_.hosts; ++i) {
      hosts_.push_back(
          std::make_unique<Host>(world_, scenario_, habits_, options_.agent_mutations, i));
    }
  }

  ClusterResult Run() {
    const TimePoint begin = scheduler_.now();
    daemons_->Start();
    for (const auto& host : hosts_) {
      host->StartAgentAfter(random_.Between(Duration::zero(), seconds(5)));
    }
    if (scenario_.only_daemon_dies) {
      RunFor(kQuietStart);
      ExpectPeace();
    }
    chaos_.Begin();
    RunFor(options_.chaos);
    checks_.rounds.ExpectNewRounds();
    Heal();
    Finish();
    ClusterResult result{.trace_hash = trace_.hash(),
                         .simulated = scheduler_.now() - begin,
                         .tasks = scheduler_.tasks(),
                         .incidents = incidents_};
    if (violations_.any()) {
      result.check = std::string(violations_.check());
      result.failure = absl::StrCat(
          "seed ", options_.seed, " after ", (scheduler_.now() - begin) / milliseconds(1),
          " ms: ", result.check, ": ", violations_.sentence(), "\n", trace_.Tail());
    }
    return result;
  }

 private:
  std::unique_ptr<Daemons> MakeDaemons() {
    if (scenario_.daemons == 1) {
      return std::make_unique<Daemon>(world_, scenario_, disk_, options_.daemon_mutations);
    }
    return std::make_unique<SeveralDaemons>(world_, scenario_, disk_, options_.daemon_mutations);
  }

  // The jobs of the daemon that serves; none when none does.
  std::vector<JobSnapshot> Jobs() const {
    const Coordinator* const coordinator = daemons_->coordinator();
    if (coordinator == nullptr) return {};
    return coordinator->List(daemons_->Now());
  }

  // True unless a check found something.
  bool RunFor(Duration time) {
    const TimePoint end = scheduler_.now() + time;
    bool ended = false;
    scheduler_.At(end, [&ended] { ended = true; });
    TimePoint last = scheduler_.now();
    int at_once = 0;
    while (!ended && !violations_.any() && scheduler_.Step()) {
      at_once = scheduler_.now() == last ? at_once + 1 : 0;
      last = scheduler_.now();
      if (at_once > kMostAtOnce) violations_.Add(Check::kBounds, "time stands still");
    }
    return !violations_.any();
  }

  template <typename Done>
  void RunUntil(Done done, Duration limit, const char* what) {
    const TimePoint end = scheduler_.now() + limit;
    while (RunFor(seconds(1))) {
      const std::string lacks = done();
      if (lacks.empty()) return;
      if (scheduler_.now() >= end) {
        return violations_.Add(Check::kAnswered, absl::StrCat(what, ": ", lacks));
      }
    }
  }

  void Heal() {
    if (violations_.any()) return;
    world_.Log("all is healed");
    habits_.never_fail = true;
    habits_.obey = true;
    chaos_.Heal();
    for (const auto& host : hosts_) {
      host->StayAway();
      host->ObeySoon();
    }
    for (const auto& host : hosts_) host->ExpectAnswers();
    RunUntil([this] { return WhoWaits(); }, kHealTime, "after healing");
  }

  // Jobs that have all their nodes by now go on as they are, whatever the daemon does.
  void ExpectPeace() {
    if (violations_.any()) return;
    const std::vector<JobSnapshot> jobs = Jobs();
    std::set<std::string> at_work;
    for (const JobSnapshot& job : jobs) at_work.insert(job.run_id);
    for (const auto& host : hosts_) {
      const SimAgent* const agent = host->agent();
      if (agent == nullptr || !WhatLacks(*agent, jobs).empty()) {
        at_work.erase(scenario_.RunIdOf(host->index()));
      }
    }
    for (const std::string& run_id : at_work) checks_.rounds.ExpectNoNewRound(run_id);
  }

  // Which agent neither runs workers of its job's round, nor is a spare of a job that runs; empty
  // when there is none.
  std::string WhoWaits() const {
    if (daemons_->coordinator() == nullptr) return "no daemon serves";
    const std::vector<JobSnapshot> jobs = Jobs();
    for (const auto& host : hosts_) {
      const SimAgent* const agent = host->agent();
      if (agent == nullptr) continue;
      const std::string lacks = WhatLacks(*agent, jobs);
      if (!lacks.empty()) return absl::StrCat("agent ", agent->node_id(), " ", lacks);
    }
    return "";
  }

  static std::string WhatLacks(const SimAgent& agent, const std::vector<JobSnapshot>& jobs) {
    for (const JobSnapshot& job : jobs) {
      for (const NodeSnapshot& node : job.nodes) {
        if (node.node.node_id != agent.node_id()) continue;
        if (job.state != JobState::kRunning) return absl::StrCat("waits: ", job.sentence);
        if (node.state == NodeState::kSpare) return "";
        if (node.state == NodeState::kSucceeded) return "";
        if (node.state != NodeState::kRunning) return "does not run its workers yet";
        const auto& group = agent.group();
        const bool runs = group != nullptr && group->processes()->alive() &&
                          group->processes()->assignment().round == job.round;
        return runs ? "" : "has no workers, and the daemon thinks that it has";
      }
    }
    return "attends no job";
  }

  void Finish() {
    if (violations_.any()) return;
    world_.Log("all work is done");
    habits_.finish = true;
    for (const auto& host : hosts_) {
      host->FinishSoon();
    }
    RunUntil([this] { return WhoIsLeft(); }, kFinishTime, "at the end");
    if (checks_.rounds.running_nodes() > 0 && !violations_.any()) {
      violations_.Add(Check::kAnswered, "workers are left when all agents have ended");
    }
  }

  std::string WhoIsLeft() const {
    for (const auto& host : hosts_) {
      if (host->agent() != nullptr) return absl::StrCat(host->agent()->node_id(), " has not ended");
    }
    const Coordinator* const coordinator = daemons_->coordinator();
    if (coordinator == nullptr) return "no daemon serves";
    if (coordinator->agent_count() > 0) return "the daemon still knows agents";
    return "";
  }

  const ClusterOptions options_;
  Random random_;
  const Scenario scenario_;
  WorkerHabits habits_;
  Violations violations_;
  Incidents incidents_;
  Trace trace_;
  Scheduler scheduler_;
  Network network_;
  Disk disk_;
  Checks checks_;
  World world_;
  std::unique_ptr<Daemons> daemons_;
  std::vector<std::unique_ptr<Host>> hosts_;
  Chaos chaos_;
};

}  // namespace

ClusterResult SimulateCluster(const ClusterOptions& options) {
  return Cluster(options).Run();
}

}  // namespace muster::rendezvous
