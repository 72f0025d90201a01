#include "test/rendezvous/simulation/simulation.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/coordinator.h"
#include "test/rendezvous/simulation/invariants.h"
#include "test/rendezvous/simulation/post.h"
#include "test/rendezvous/simulation/random.h"
#include "test/rendezvous/simulation/scenario.h"
#include "test/rendezvous/simulation/simulated_agent.h"
#include "test/rendezvous/simulation/trace.h"
#include "test/rendezvous/support/directive_text.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kAgents = 16;
constexpr Duration kLatestTick = milliseconds(200);  // without a halt
constexpr Duration kLongestHalt = seconds(8);
// In this time everything must have come to its end once nothing goes wrong any more: who is cut
// off is back or lost, rounds gather, workers run and stop, each perhaps twice in a row.
constexpr Duration kHealTime = seconds(150);
// Every so many events all jobs are described and compared with what the agents know.
constexpr std::int64_t kDescribeEvery = 128;

class Simulation final : public SimulatedAgent::Surroundings {
 public:
  explicit Simulation(const SimulationOptions& options)
      : options_(options),
        random_(options.seed),
        scenario_(MakeScenario(random_)),
        invariants_(kLongestHalt + kLatestTick),
        trace_(options.trace) {
    for (int index = 0; index < kAgents; ++index) {
      nodes_.push_back(std::make_unique<Node>(index, &scenario_.habits, &random_, this));
      post_.Put(now_ + random_.Between(milliseconds(0), seconds(5)), Newcomer{index});
    }
  }

  SimulationResult Run() {
    while (events_ < options_.events && failure_.empty()) {
      Step();
    }
    if (failure_.empty()) Heal();
    if (failure_.empty()) TurnAway();
    return {failure_, trace_.hash(), events_, invariants_.coverage()};
  }

 private:
  struct Node {
    Node(int index, const Habits* habits, Random* random, Surroundings* surroundings)
        : agent(index, habits, random, surroundings) {}
    SimulatedAgent agent;
    int incarnation = 0;
    // Messages keep their order: none arrives before the one that was sent before it.
    TimePoint last_sent_arrives{};
    TimePoint last_told_arrives{};
    // Nothing gets through before this, in either direction.
    TimePoint cut_off_until{};
  };
  struct Attendance {
    int index = 0;  // of the node
    bool lost = false;
  };

  // SimulatedAgent::Surroundings.
  void Send(int index, const Call& message) override {
    Node& node = *nodes_[index];
    TimePoint& arrives = node.last_sent_arrives;
    arrives = std::max({arrives, node.cut_off_until, now_ + Delay()});
    ToCoordinator item{message, nullptr};
    if (message.kind == CallKind::kJoin) {
      item.request = std::make_unique<const JoinRequest>(node.agent.request());
      item.event.request = item.request.get();
    }
    post_.Put(arrives, std::move(item));
  }
  void SetAlarm(int index, Duration after, std::uint64_t number) override {
    post_.Put(now_ + after, Alarm{index, number});
  }
  void Gone(int index) override {
    post_.Put(now_ + random_.Between(milliseconds(0), scenario_.longest_absence), Newcomer{index});
  }

  Duration Delay() {
    return random_.Chance(scenario_.slow_per_1000, 1000)
               ? random_.Between(milliseconds(0), scenario_.longest_delay)
               : random_.Between(milliseconds(0), milliseconds(3));
  }

  // Lets the next thing happen, whichever it is.
  void Step() {
    if (deadline_) {
      const TimePoint tick = std::max({now_, halted_until_, *deadline_ + tick_delay_});
      if (post_.empty() || tick <= post_.next_time()) {
        now_ = tick;
        Tick();
        return;
      }
    }
    if (post_.empty()) {
      Fail("nothing is left to happen, and not every job has ended");
      return;
    }
    const TimePoint time = post_.next_time();
    // While the daemon stands still the agents go on, and what they send waits at its door.
    if (time < halted_until_ && post_.next_is_for_coordinator()) {
      post_.Defer(halted_until_);
      return;
    }
    now_ = std::max(now_, time);
    const Item item = post_.Take();
    std::visit([this](const auto& arrived) { Arrive(arrived); }, item);
  }

  void Tick() {
    const bool halted = halted_until_ > *deadline_;
    Make({.kind = CallKind::kTick, .late = halted ? now_ - *deadline_ : Duration::zero()});
    tick_delay_ =
        random_.Chance(1, 5) ? random_.Between(milliseconds(0), kLatestTick) : Duration::zero();
  }

  void Arrive(const ToCoordinator& item) {
    Attendance& attendance = attendances_[item.event.agent - 1];
    if (item.event.kind == CallKind::kLost) attendance.lost = true;
    // What a front still holds of a stream that has ended does no harm, but for this: nobody would
    // ever end the attendance that it opens. No front hands it over.
    if (item.event.kind == CallKind::kJoin && attendance.lost) return;
    Make(item.event);
    MaybeGoWrong();
  }
  void Arrive(const ToAgent& item) {
    SimulatedAgent& agent = nodes_[item.index]->agent;
    if (!agent.away() && agent.agent() == item.agent) agent.OnDirective(item.directive);
  }
  void Arrive(const Alarm& alarm) { nodes_[alarm.index]->agent.OnAlarm(alarm.number); }
  void Arrive(const Newcomer& newcomer) {
    if (healing_) return;
    Node& node = *nodes_[newcomer.index];
    node.agent.Arrive(NewAgent(newcomer.index),
                      scenario_.RequestOf(newcomer.index, ++node.incarnation, random_));
  }

  AgentId NewAgent(int index) {
    attendances_.push_back({index});
    return attendances_.size();
  }

  // Hands the event to the Coordinator, and what comes of it to everyone concerned.
  void Make(const Call& event) {
    ++events_;
    trace_.Add(absl::StrCat("@", now_.time_since_epoch() / milliseconds(1), " ", CallText(event)));
    std::optional<JobSnapshot> before;
    const std::string* const old_job = invariants_.JobOfOldRound(event);
    if (old_job != nullptr) before = coordinator_.Describe(*old_job, now_);
    HandOver(event);
    deadline_ = coordinator_.NextDeadline();
    if (before) {
      const std::optional<JobSnapshot> after = coordinator_.Describe(*old_job, now_);
      invariants_.ObserveOld(event, *before, after.value_or(JobSnapshot{}));
    }

    Outbox outbox = coordinator_.TakeOutbox();
    // That a beat is acknowledged is no consequence of it for the job.
    std::erase_if(outbox.directives, [](const Outgoing& outgoing) {
      return std::holds_alternative<Heard>(outgoing.directive());
    });
    invariants_.Observe(event, outbox, now_);
    invariants_.ObserveDeadline(deadline_);
    for (Outgoing& outgoing : outbox.directives) {
      trace_.Add(absl::StrCat("  a", outgoing.to, " <- ", DirectiveText(outgoing.directive())));
      Tell(std::move(outgoing));
    }
    for (const Transition& log : outbox.transitions) {
      trace_.Add(absl::StrCat("  log ", log.run_id, " ", log.round, " ", log.node, ": ", log.text));
    }
    for (const std::string& run_id : outbox.forgotten_jobs) {
      trace_.Add(absl::StrCat("  forgotten ", run_id));
    }
    if (events_ % kDescribeEvery == 0) {
      for (const JobSnapshot& job : coordinator_.List(now_)) invariants_.ObserveSnapshot(job);
    }
    if (!invariants_.violations().empty()) {
      const Violation& first = invariants_.violations().front();
      Fail(absl::StrCat(NameOf(first.check), ": ", first.sentence));
    }
  }

  void Hear(AgentId agent, const Event& event) { coordinator_.Hear(agent, event, now_); }

  void HandOver(const Call& event) {
    const RoundId round{event.incarnation, event.round};
    switch (event.kind) {
      case CallKind::kJoin:
        return Hear(event.agent, *event.request);
      case CallKind::kKeepAlive:
        return Hear(event.agent, KeepAlive{});
      case CallKind::kStarted:
        return Hear(event.agent, WorkersStarted{round});
      case CallKind::kSucceeded:
        return Hear(event.agent, WorkersExited{round, {.succeeded = true}});
      case CallKind::kFailed:
        return Hear(event.agent,
                    WorkersExited{round,
                                  {.failure = WorkerFailure{.rank = event.rank,
                                                            .host = absl::StrCat("a", event.agent),
                                                            .exit_code = 1,
                                                            .what = "exited with code 1"}}});
      case CallKind::kLeaving:
        return Hear(event.agent, Leaving{"SIGTERM"});
      case CallKind::kAskToLeave:
        return Hear(event.agent, AskToLeave{round, "it is drained"});
      case CallKind::kLeave:
        return Hear(event.agent, Goodbye{});
      case CallKind::kLost:
        return coordinator_.Disconnected(event.agent, "its stream ended", now_);
      case CallKind::kTick:
        return coordinator_.Tick(now_);
      case CallKind::kClose:
        return coordinator_.Close("an operator said so", now_);
      case CallKind::kDrain:
        return coordinator_.Drain("it is going to end");
    }
  }

  void Tell(Outgoing outgoing) {
    const int index = attendances_[outgoing.to - 1].index;
    Node& node = *nodes_[index];
    TimePoint& arrives = node.last_told_arrives;
    arrives = std::max({arrives, node.cut_off_until, now_ + Delay()});
    post_.Put(arrives, ToAgent{index, outgoing.to, outgoing.directive()});
  }

  void MaybeGoWrong() {
    if (healing_ || !random_.Chance(scenario_.faults_per_10000, 10'000)) return;
    const int index = static_cast<int>(random_.Below(kAgents));
    Node& node = *nodes_[index];
    const std::int64_t what = random_.Below(1000);
    if (what < 5) {
      Make({.kind = CallKind::kClose});
    } else if (what < 50) {
      halted_until_ = now_ + random_.Between(milliseconds(100), kLongestHalt);
    } else if (what < 100) {
      for (const auto& each : nodes_) {
        if (random_.Chance(1, 3)) each->agent.AskToLeave();
      }
    } else if (node.agent.away()) {
      return;
    } else if (what < 300) {
      node.agent.Terminate();
    } else if (what < 450) {
      node.agent.Quit();
      // The stream ends after the goodbye, too.
      SendLost(index);
    } else if (what < 700) {
      node.agent.Vanish();
      SendLost(index);
    } else if (scenario_.lease > Duration::zero()) {
      node.cut_off_until = now_ + random_.Between(milliseconds(0), 2 * scenario_.lease);
    }
  }

  // Half of the time at once, overtaking what is on its way: the transport notices by itself.
  void SendLost(int index) {
    const Call lost{.kind = CallKind::kLost, .agent = nodes_[index]->agent.agent()};
    if (random_.Chance(1, 2)) {
      Send(index, lost);
    } else {
      post_.Put(now_ + Delay(), ToCoordinator{lost, nullptr});
    }
  }

  void Heal() {
    healing_ = true;
    scenario_.habits.failures_per_1000 = 0;
    const TimePoint limit = now_ + kHealTime;
    while (failure_.empty() && (!post_.empty() || deadline_)) {
      Step();
      if (now_ <= limit) continue;
      Fail("not all jobs have come to their end in the time that they should need");
    }
    if (!failure_.empty()) return;
    for (const JobSnapshot& job : coordinator_.List(now_)) {
      if (job.state == JobState::kEnded && job.nodes.empty()) continue;
      Fail(absl::StrCat("job ", job.run_id, " never ends: ", job.sentence));
    }
    if (!coordinator_.idle()) Fail("agents still attend when all have left");
  }

  void TurnAway() {
    Make({.kind = CallKind::kDrain});
    const JoinRequest request = scenario_.RequestOf(0, ++nodes_[0]->incarnation, random_);
    Make({.kind = CallKind::kJoin, .agent = NewAgent(0), .request = &request});
    if (!coordinator_.idle()) Fail("a drained rendezvous took a new node");
  }

  void Fail(const std::string& what) {
    if (!failure_.empty()) return;
    failure_ =
        absl::StrCat("seed ", options_.seed, ", event ", events_, " at ",
                     now_.time_since_epoch() / milliseconds(1), " ms: ", what, "\n", trace_.Tail());
  }

  const SimulationOptions options_;
  Random random_;
  Scenario scenario_;
  Coordinator coordinator_;
  Invariants invariants_;
  Trace trace_;

  TimePoint now_{};
  std::optional<TimePoint> deadline_;  // what the Coordinator last asked for
  std::int64_t events_ = 0;
  std::string failure_;
  bool healing_ = false;
  Post post_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Attendance> attendances_;  // by AgentId, less 1
  TimePoint halted_until_{};             // the daemon's process stands still
  Duration tick_delay_{};                // of the next tick
};

}  // namespace

SimulationResult Simulate(const SimulationOptions& options) {
  return Simulation(options).Run();
}

}  // namespace muster::rendezvous
