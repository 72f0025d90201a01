#include "test/rendezvous/cluster/host.h"

#include <utility>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

}  // namespace

Host::Host(World world, const Scenario& scenario, const WorkerHabits& habits,
           const AgentMutations& mutations, int index)
    : world_(world),
      scenario_(scenario),
      habits_(habits),
      mutations_(mutations),
      index_(index),
      clock_offset_(world.random.Between(seconds(0), seconds(1'000'000))) {
  StartStoreClients();
}

void Host::StartStoreClients() {
  store_client_ = std::make_unique<SimStoreClient>(world_, index_, scenario_.RunIdOf(index_));
  store_client_->Begin();
  store_waiter_ = std::make_unique<StoreWaiter>(world_, index_, scenario_.RunIdOf(index_));
  store_waiter_->Begin();
}

void Host::StartAgent() {
  if (!powered_ || agent_ != nullptr) return;
  world_.Log("host ", index_, " starts an agent");
  ++agents_started_;
  agent_ = std::make_unique<SimAgent>(
      world_,
      SimAgent::Options{.host = index_,
                        .clock_offset = clock_offset_,
                        .request = scenario_.RequestOf(index_, agents_started_),
                        .ladder = scenario_.JobOf(index_).ladder,
                        .checks_health = scenario_.JobOf(index_).checks_health,
                        .habits = habits_,
                        .mutations = mutations_},
      [this, number = agents_started_] {
        // It is in the middle of a call.
        world_.scheduler.After(Duration::zero(), [this, number] {
          if (agent_ == nullptr || number != agents_started_) return;
          RemoveAgent(false);
          if (!stays_away_) StartAgentAfter(world_.random.Between(seconds(0), seconds(20)));
        });
      });
  agent_->Begin();
}

void Host::StartAgentAfter(Duration pause) {
  world_.scheduler.After(pause, [this] { StartAgent(); });
}

void Host::RemoveAgent(bool killed) {
  const std::shared_ptr<SimWorkerGroup> group = agent_->group();
  agent_.reset();
  std::erase_if(left_,
                [](const Left& left) { return left.guard->over() && !left.processes->any(); });
  if (group == nullptr) return;
  group->processes()->SetEvents({});
  left_.push_back({group->processes(), group->guard()});
  if (killed) group->guard()->AgentGone();
}

void Host::KillAgent() {
  if (agent_ == nullptr) return;
  world_.Log("host ", index_, ": its agent is killed");
  RemoveAgent(true);
}

void Host::TerminateAgent() {
  if (agent_ != nullptr) agent_->Terminate();
}

void Host::DrainNode() {
  if (agent_ != nullptr) agent_->Drain(1 + static_cast<int>(world_.random.Below(3)));
}

void Host::StopAgent(Duration duration) {
  if (agent_ == nullptr || agent_->stopped()) return;
  world_.Log("host ", index_, ": its agent is stopped for ", duration / milliseconds(1), " ms");
  agent_->Stop();
  world_.scheduler.After(duration, [this, number = agents_started_] {
    if (agent_ != nullptr && number == agents_started_) agent_->Continue();
  });
}

void Host::ContinueAgent() {
  if (agent_ != nullptr) agent_->Continue();
}

void Host::PowerOff() {
  if (!std::exchange(powered_, false)) return;
  world_.Log("host ", index_, " loses its power");
  // Before its processes end, so that nobody is told of their connections' end.
  world_.network.PowerOff(index_);
  if (agent_ != nullptr) RemoveAgent(false);
  for (const Left& left : left_) {
    left.guard->PowerOff();
    left.processes->PowerOff();
  }
  left_.clear();
  store_client_.reset();
  store_waiter_.reset();
}

void Host::PowerOn() {
  if (std::exchange(powered_, true)) return;
  // A machine's monotonic clock starts anew with it.
  clock_offset_ = world_.random.Between(seconds(0), seconds(1'000'000));
  StartStoreClients();
  StartAgent();
}

template <typename Visit>
void Host::ForEachRound(Visit visit) {
  for (const Left& left : left_) visit(*left.processes);
  if (agent_ != nullptr && agent_->group() != nullptr) visit(*agent_->group()->processes());
}

void Host::FinishSoon() {
  ForEachRound([](WorkerProcesses& processes) { processes.FinishSoon(); });
}

void Host::ObeySoon() {
  ForEachRound([](WorkerProcesses& processes) { processes.ObeySoon(); });
}

}  // namespace muster::rendezvous
