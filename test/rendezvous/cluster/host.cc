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
      clock_offset_(world.random.Between(seconds(0), seconds(1'000'000))),
      guard_(world, index, mutations) {
  store_client_ = std::make_unique<StoreClient>(world_, index_, scenario_.RunIdOf(index_));
  store_client_->Begin();
}

void Host::StartAgent() {
  if (!powered_ || agent_ != nullptr) return;
  if (workers_left_ != nullptr && workers_left_->alive()) return StartAgentAfter(milliseconds(50));
  workers_left_.reset();
  world_.Log("host ", index_, " starts an agent");
  ++agents_started_;
  agent_ = std::make_unique<SimAgent>(
      world_,
      SimAgent::Options{.host = index_,
                        .clock_offset = clock_offset_,
                        .request = scenario_.RequestOf(index_, agents_started_),
                        .habits = habits_,
                        .mutations = mutations_},
      guard_, [this, number = agents_started_] {
        // It is in the middle of a call.
        world_.scheduler.After(Duration::zero(), [this, number] {
          if (agent_ == nullptr || number != agents_started_) return;
          RemoveAgent();
          if (!stays_away_) StartAgentAfter(world_.random.Between(seconds(0), seconds(20)));
        });
      });
  agent_->Begin();
}

void Host::StartAgentAfter(Duration pause) {
  world_.scheduler.After(pause, [this] { StartAgent(); });
}

void Host::RemoveAgent() {
  workers_left_ = agent_->workers();
  agent_.reset();
}

void Host::KillAgent() {
  if (agent_ == nullptr) return;
  world_.Log("host ", index_, ": its agent is killed");
  RemoveAgent();
  guard_.AgentDied();
}

void Host::TerminateAgent() {
  if (agent_ != nullptr) agent_->Terminate();
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
  guard_.PowerOff();
  if (agent_ != nullptr) RemoveAgent();
  store_client_.reset();
  if (workers_left_ != nullptr) workers_left_->Die(false);
}

void Host::PowerOn() {
  if (std::exchange(powered_, true)) return;
  // A machine's monotonic clock starts anew with it.
  clock_offset_ = world_.random.Between(seconds(0), seconds(1'000'000));
  store_client_ = std::make_unique<StoreClient>(world_, index_, scenario_.RunIdOf(index_));
  store_client_->Begin();
  StartAgent();
}

const std::shared_ptr<FakeWorkers>& Host::workers() const {
  return agent_ != nullptr ? agent_->workers() : workers_left_;
}

}  // namespace muster::rendezvous
