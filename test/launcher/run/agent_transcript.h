// Transcripts of what an agent decides: an event and its time go in; what the core does comes out,
// on one line, in order.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "launcher/run/agent_core.h"

namespace muster::launcher {

// An AgentCore and its port, which writes down what it is asked for. Events for the event log are
// in brackets, with their cause; warnings in quotation marks; notices are left out.
class AgentTranscript : private AgentPort {
 public:
  static constexpr AgentCore::Options kDefault{.grace = std::chrono::seconds(30)};
  // kActs: neither events nor warnings.
  enum class Shows { kAll, kActs };

  explicit AgentTranscript(const AgentCore::Options& options = kDefault, Shows shows = Shows::kAll)
      : shows_(shows), core_(*this, options) {}
  AgentTranscript(const AgentTranscript&) = delete;
  AgentTranscript& operator=(const AgentTranscript&) = delete;

  // One for each event of AgentCore.
  std::string Begin() { return After(&AgentCore::Begin); }
  std::string OnDirective(const rendezvous::Directive& directive,
                          rendezvous::TimePoint now = rendezvous::TimePoint()) {
    return After(&AgentCore::OnDirective, directive, now);
  }
  std::string OnFenced(const std::string& why) { return After(&AgentCore::OnFenced, why); }
  std::string OnLost(const absl::Status& status) { return After(&AgentCore::OnLost, status); }
  std::string OnGoodbyeHeard() { return After(&AgentCore::OnGoodbyeHeard); }
  std::string OnHealth(const absl::Status& status) { return After(&AgentCore::OnHealth, status); }
  std::string OnCannotStart(const absl::Status& status) {
    return After(&AgentCore::OnCannotStart, status);
  }
  std::string OnWorkersStarted() { return After(&AgentCore::OnWorkersStarted); }
  std::string OnFirstFailure(const rendezvous::WorkerFailure& failure) {
    return After(&AgentCore::OnFirstFailure, failure);
  }
  std::string OnLostTouch() { return After(&AgentCore::OnLostTouch); }
  std::string OnWorkersGone(const worker::GroupResult& result) {
    return After(&AgentCore::OnWorkersGone, result);
  }
  std::string OnSignal(int signal) { return After(&AgentCore::OnSignal, signal); }
  std::string OnDrained(const std::string& why) { return After(&AgentCore::OnDrained, why); }

  AgentCore& core() { return core_; }
  // How the run ended or will end: a verdict's sentence, "rendezvous: " or "node: " and why it
  // failed, "interrupted by SIGINT", "left: Slurm drains it". Empty: not known yet.
  std::string Result() const;
  const AgentEvent& last_event() const { return last_event_; }

 private:
  template <typename Event, typename... Values>
  std::string After(Event event, const Values&... values) {
    lines_.clear();
    (core_.*event)(values...);
    return Written();
  }
  std::string Written() const;

  void CheckHealth() override { lines_.emplace_back("check health"); }
  void Join(rendezvous::RoundId after, const std::string& unfit) override;
  void Say(rendezvous::Event event) override;
  void Leave(const std::string& reason) override;
  void StartWorkers(const rendezvous::Assignment& assignment) override;
  void StopWorkers(int signal) override;
  void Finish(const RunResult&) override { lines_.emplace_back("finish"); }
  void Tell(Level level, const std::string& sentence) override;
  void Note(const AgentEvent& event) override;

  const Shows shows_;
  AgentCore core_;
  std::vector<std::string> lines_;
  AgentEvent last_event_;
};

}  // namespace muster::launcher
