// The one path to the Coordinator in a running daemon: gives each call the time, delivers what
// comes out of it, and lets time pass.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "rendezvous/core/coordinator.h"
#include "rendezvous/core/directive.h"

namespace muster::rendezvous {

// Lives on the loop's thread and is called only there. Fronts and in-process clients attach agents,
// hand their events in and get their directives by the sink; a sink that calls the Driver again is
// in order: what comes of it is delivered after what is being delivered.
//
// Between events the Driver sleeps: one timer is set to the Coordinator's next deadline.
class Driver {
 public:
  using Sink = std::function<void(const Directive&)>;
  using Watcher = std::function<void(const Transition&)>;

  // `watcher` sees every transition (for the log); may be empty. `io` must outlive the Driver.
  Driver(boost::asio::io_context& io, Watcher watcher, const Coordinator::Limits& limits = {});
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // A new agent that will be told its directives by `sink`, until Detach.
  AgentId Attach(Sink sink);
  // The agent gets nothing more. Does not tell the Coordinator: Leave or Lost comes first.
  void Detach(AgentId agent);

  // Events, as the Coordinator has them.
  void Join(AgentId agent, const JoinRequest& request);
  void KeepAlive(AgentId agent);
  void WorkersStarted(AgentId agent, RoundNumber round);
  void WorkersExited(AgentId agent, RoundNumber round, const WorkersOutcome& outcome);
  void Leaving(AgentId agent, const std::string& reason);
  void Leave(AgentId agent, const std::string& reason);
  void Lost(AgentId agent, const std::string& why);
  void Drain(const std::string& why);
  void Close(const std::string& why);

  // Sets who is told that a job, and with it its store, is no more.
  void OnForgotten(std::function<void(const std::string& run_id)> told) {
    on_forgotten_ = std::move(told);
  }

  // Calls `done` from the loop as soon as no agent attends any job.
  void WhenIdle(std::function<void()> done);

  std::optional<JobSnapshot> Describe(std::string_view run_id) const;
  std::vector<JobSnapshot> List() const;
  int agent_count() const { return coordinator_.agent_count(); }
  int job_count() const { return coordinator_.job_count(); }
  KeyValueStore* FindStore(std::string_view run_id) { return coordinator_.FindStore(run_id); }

 private:
  static TimePoint Now();
  // Takes what the last call brought about, delivers it, and sets the timer anew.
  void Follow();
  void ArmTimer();

  boost::asio::io_context& io_;
  const Watcher watcher_;

  Coordinator coordinator_;
  boost::asio::steady_timer timer_;
  std::optional<TimePoint> timer_due_;
  AgentId next_agent_ = 1;
  std::map<AgentId, Sink> sinks_;
  std::deque<Outgoing> undelivered_;
  bool delivering_ = false;
  std::function<void(const std::string&)> on_forgotten_;
  std::vector<std::function<void()>> when_idle_;
};

}  // namespace muster::rendezvous
