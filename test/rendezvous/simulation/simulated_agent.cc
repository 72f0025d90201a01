#include "test/rendezvous/simulation/simulated_agent.h"

#include <variant>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

}  // namespace

void SimulatedAgent::Arrive(AgentId agent, const JoinRequest& request) {
  agent_ = agent;
  request_ = request;
  assignment_ = {.round = kNoRound};
  keep_alive_ = Duration::zero();
  keep_alive_alarm_ = 0;
  state_ = State::kAsking;
  Send(CallKind::kJoin, kNoRound);
}

void SimulatedAgent::OnDirective(const Directive& directive) {
  if (const auto* welcome = std::get_if<Welcome>(&directive)) {
    keep_alive_ = welcome->keep_alive;
    incarnation_ = welcome->incarnation;
    KeepAlive();
  } else if (const auto* assignment = std::get_if<Assignment>(&directive)) {
    if (state_ != State::kAsking) return;  // it has said Leaving meanwhile
    const RoundNumber old_round = assignment_.round;
    assignment_ = *assignment;
    if (old_round != kNoRound && random_->Chance(1, 10)) SendAnyReport(old_round);
    state_ = State::kStarting;
    SetAlarm(random_->Between(milliseconds(0), habits_->longest_start));
  } else if (const auto* stop = std::get_if<Stop>(&directive)) {
    if (state_ == State::kEnding || stop->round != assignment_.round) return;
    OnStop();
  } else if (const auto* answer = std::get_if<LeaveAnswer>(&directive)) {
    if (!answer->may_leave || state_ == State::kEnding) return;
    LeaveInOrder(HasWorkers() || state_ == State::kStopping);
  } else if (std::holds_alternative<Verdict>(directive)) {
    if (state_ != State::kEnding) LeaveInOrder(HasWorkers() || state_ == State::kStopping);
  } else if (std::holds_alternative<Refused>(directive) ||
             std::holds_alternative<Evicted>(directive)) {
    BecomeAway();
  }
}

void SimulatedAgent::OnStop() {
  const bool had_workers = HasWorkers();
  state_ = State::kStopping;
  SetAlarm(had_workers ? random_->Between(milliseconds(0), habits_->longest_ladder)
                       : Duration::zero());
  // Some workers fail of the same cause at the same moment, and their agent says so before it has
  // read that the round is over.
  if (had_workers && random_->Chance(1, 3)) SendAnyReport(assignment_.round);
}

void SimulatedAgent::OnAlarm(std::uint64_t number) {
  if (number == keep_alive_alarm_) {
    Send(CallKind::kKeepAlive, kNoRound);
    KeepAlive();
    return;
  }
  if (number != alarm_) return;
  switch (state_) {
    case State::kStarting:
      // One that cannot be started fails without having started.
      if (random_->Chance(habits_->failures_per_1000, 10'000)) {
        state_ = State::kFinished;
        Send(CallKind::kFailed, assignment_.round);
        break;
      }
      state_ = State::kRunning;
      Send(CallKind::kStarted, assignment_.round);
      SetAlarm(random_->Between(habits_->shortest_run, habits_->longest_run));
      break;
    case State::kRunning:
      state_ = State::kFinished;
      Send(random_->Chance(habits_->failures_per_1000, 1000) ? CallKind::kFailed
                                                             : CallKind::kSucceeded,
           assignment_.round);
      break;
    case State::kStopping:
      state_ = State::kAsking;
      // The socket that the store of the next round will listen on is a new one.
      ++request_.node.master_port;
      request_.after = assignment_.round;
      Send(CallKind::kJoin, kNoRound);
      break;
    case State::kEnding:
      Quit();
      break;
    default:
      break;
  }
}

void SimulatedAgent::Terminate() {
  if (state_ == State::kAway || state_ == State::kEnding) return;
  Send(CallKind::kLeaving, kNoRound);
  LeaveInOrder(HasWorkers() || state_ == State::kStopping);
}

void SimulatedAgent::AskToLeave() {
  const bool asks = HasWorkers() || state_ == State::kAsking;
  if (asks) Send(CallKind::kAskToLeave, assignment_.round);
}

void SimulatedAgent::LeaveInOrder(bool workers_left) {
  if (!workers_left) {
    Quit();
    return;
  }
  state_ = State::kEnding;
  SetAlarm(random_->Between(milliseconds(0), habits_->longest_ladder));
}

void SimulatedAgent::Quit() {
  if (state_ == State::kAway) return;
  Send(CallKind::kLeave, kNoRound);
  BecomeAway();
}

void SimulatedAgent::Vanish() {
  if (state_ != State::kAway) BecomeAway();
}

void SimulatedAgent::BecomeAway() {
  state_ = State::kAway;
  alarm_ = keep_alive_alarm_ = 0;
  surroundings_->Gone(index_);
}

void SimulatedAgent::Send(CallKind kind, RoundNumber round) {
  Call message{.kind = kind, .agent = agent_, .round = round, .incarnation = incarnation_};
  if (kind == CallKind::kFailed) {
    message.rank = assignment_.base_rank + static_cast<int>(random_->Below(request_.node.slots));
  }
  surroundings_->Send(index_, message);
}

void SimulatedAgent::SendAnyReport(RoundNumber round) {
  constexpr CallKind kReports[] = {CallKind::kStarted, CallKind::kSucceeded, CallKind::kFailed,
                                   CallKind::kFailed};
  Send(random_->OneOf(kReports), round);
}

void SimulatedAgent::SetAlarm(Duration after) {
  alarm_ = ++last_alarm_;
  surroundings_->SetAlarm(index_, after, alarm_);
}

void SimulatedAgent::KeepAlive() {
  if (keep_alive_ == Duration::zero()) return;
  keep_alive_alarm_ = ++last_alarm_;
  surroundings_->SetAlarm(index_, keep_alive_, keep_alive_alarm_);
}

}  // namespace muster::rendezvous
