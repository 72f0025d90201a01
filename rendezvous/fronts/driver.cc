#include "rendezvous/fronts/driver.h"

#include <boost/asio/post.hpp>

namespace muster::rendezvous {

Driver::Driver(boost::asio::io_context& io, Watcher watcher, const Coordinator::Limits& limits)
    : io_(io), watcher_(std::move(watcher)), coordinator_(limits), timer_(io) {}

AgentId Driver::Attach(Sink sink) {
  const AgentId agent = next_agent_++;
  sinks_.emplace(agent, std::move(sink));
  return agent;
}

void Driver::Detach(AgentId agent) {
  sinks_.erase(agent);
}

void Driver::Join(AgentId agent, const JoinRequest& request) {
  coordinator_.Join(agent, request, Now());
  Follow();
}

void Driver::KeepAlive(AgentId agent) {
  coordinator_.KeepAlive(agent, Now());
  Follow();
}

void Driver::WorkersStarted(AgentId agent, RoundNumber round) {
  coordinator_.WorkersStarted(agent, round, Now());
  Follow();
}

void Driver::WorkersExited(AgentId agent, RoundNumber round, const WorkersOutcome& outcome) {
  coordinator_.WorkersExited(agent, round, outcome, Now());
  Follow();
}

void Driver::Leaving(AgentId agent, const std::string& reason) {
  coordinator_.Leaving(agent, reason, Now());
  Follow();
}

void Driver::Leave(AgentId agent, const std::string& reason) {
  coordinator_.Leave(agent, reason, Now());
  Follow();
}

void Driver::Lost(AgentId agent, const std::string& why) {
  coordinator_.Lost(agent, why, Now());
  Follow();
}

void Driver::Drain(const std::string& why) {
  coordinator_.Drain(why);
  Follow();
}

void Driver::Close(const std::string& why) {
  coordinator_.Close(why, Now());
  Follow();
}

void Driver::WhenIdle(std::function<void()> done) {
  when_idle_.push_back(std::move(done));
  Follow();
}

std::optional<JobSnapshot> Driver::Describe(std::string_view run_id) const {
  return coordinator_.Describe(run_id, Now());
}

std::vector<JobSnapshot> Driver::List() const {
  return coordinator_.List(Now());
}

TimePoint Driver::Now() {
  return std::chrono::steady_clock::now();
}

void Driver::Follow() {
  Outbox outbox = coordinator_.TakeOutbox();
  if (watcher_) {
    for (const Transition& transition : outbox.transitions) watcher_(transition);
  }
  if (on_forgotten_) {
    for (const std::string& run_id : outbox.forgotten_jobs) on_forgotten_(run_id);
  }
  for (Outgoing& outgoing : outbox.directives) undelivered_.push_back(std::move(outgoing));
  // A sink that called us is on the stack below: its loop goes on with what was added.
  if (delivering_) return;
  delivering_ = true;
  while (!undelivered_.empty()) {
    const Outgoing outgoing = std::move(undelivered_.front());
    undelivered_.pop_front();
    // A copy, as the sink may detach itself.
    if (const auto sink = sinks_.find(outgoing.to); sink != sinks_.end()) {
      const Sink call = sink->second;
      call(outgoing.directive);
    }
  }
  delivering_ = false;
  ArmTimer();
  if (coordinator_.idle()) {
    for (std::function<void()>& done : std::exchange(when_idle_, {})) {
      boost::asio::post(io_, std::move(done));
    }
  }
}

void Driver::ArmTimer() {
  const std::optional<TimePoint> due = coordinator_.NextDeadline();
  if (due == timer_due_) return;
  timer_due_ = due;
  timer_.cancel();
  if (!due) return;
  timer_.expires_at(*due);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    timer_due_.reset();
    coordinator_.Tick(Now());
    Follow();
  });
}

}  // namespace muster::rendezvous
