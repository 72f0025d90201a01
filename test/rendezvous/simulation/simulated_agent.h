// An agent as the Coordinator sees it: the launcher's agent without processes and sockets.
#pragma once

#include <cstdint>

#include "rendezvous/core/directive.h"
#include "rendezvous/core/types.h"
#include "test/rendezvous/simulation/call.h"
#include "test/rendezvous/simulation/random.h"

namespace muster::rendezvous {

// How agents and their workers behave in a run.
struct Habits {
  Duration longest_start = std::chrono::milliseconds(500);
  Duration shortest_run = std::chrono::milliseconds(100);
  Duration longest_run = std::chrono::seconds(8);
  Duration longest_ladder = std::chrono::seconds(3);
  int failures_per_1000 = 50;  // per 1,000 rounds that a node runs
};

// The states of an agent. It begins away, then for each attendance:
//
//   away --Arrive--> asking --Assignment--> starting --> running --> finished
//                      ^                       |            |           |
//                      +------- stopping <-----+--- Stop ---+-----------+
//
// On entering running it sends Started, and when the workers end, Succeeded or Failed. Stopping
// takes as long as a stop ladder and ends with the next Join; a worker that dies during it may
// still be reported late, while stopping or even after the next round has begun. A Verdict or
// Terminate makes it ending: first the ladder, then Leave. Refused and Vanish make it away at once.
//
// One thread. Owned by the Simulation, which also delivers the agent's messages and sets its
// alarms.
class SimulatedAgent {
 public:
  // The world around an agent, which must outlive it.
  class Surroundings {
   public:
    virtual ~Surroundings() = default;
    // Sends a message from agent `index` to the Coordinator.
    virtual void Send(int index, const Call& message) = 0;
    // Requests a call of OnAlarm(number) after `after`.
    virtual void SetAlarm(int index, Duration after, std::uint64_t number) = 0;
    // The agent is now away.
    virtual void Gone(int index) = 0;
  };

  // `index` is the agent's index among all agents. `habits` may change while the agent exists.
  SimulatedAgent(int index, const Habits* habits, Random* random, Surroundings* surroundings)
      : index_(index), habits_(habits), random_(random), surroundings_(surroundings) {}

  // A new process of this node, with an AgentId and a node id that were never used, asks for a
  // place. Only while away.
  void Arrive(AgentId agent, const JoinRequest& request);

  // From the Coordinator, for this attendance.
  void OnDirective(const Directive& directive);
  void OnAlarm(std::uint64_t number);

  // SIGTERM: sends Leaving, stops the workers, sends Leave.
  void Terminate();
  // Asks whether it may leave, if it has workers or waits for a place. Once it hears that it may,
  // it stops them, and sends Leave.
  void AskToLeave();
  // Sends Leave at once, whatever its workers are doing.
  void Quit();
  // The process or its node dies: sends nothing.
  void Vanish();

  AgentId agent() const { return agent_; }
  bool away() const { return state_ == State::kAway; }
  // The agent's last Join.
  const JoinRequest& request() const { return request_; }

 private:
  enum class State { kAway, kAsking, kStarting, kRunning, kFinished, kStopping, kEnding };

  bool HasWorkers() const { return state_ == State::kStarting || state_ == State::kRunning; }
  void Send(CallKind kind, RoundNumber round);
  void SendAnyReport(RoundNumber round);
  void SetAlarm(Duration after);
  void KeepAlive();
  void OnStop();
  // Leaves after the ladder if there are workers, otherwise at once.
  void LeaveInOrder(bool workers_left);
  void BecomeAway();

  const int index_;
  const Habits* const habits_;
  Random* const random_;
  Surroundings* const surroundings_;

  State state_ = State::kAway;
  AgentId agent_ = 0;
  JoinRequest request_;
  Incarnation incarnation_ = 0;
  Assignment assignment_;  // the last one
  Duration keep_alive_{};
  std::uint64_t last_alarm_ = 0;
  std::uint64_t alarm_ = 0;  // the one that changes the state; older ones are ignored
  std::uint64_t keep_alive_alarm_ = 0;
};

}  // namespace muster::rendezvous
