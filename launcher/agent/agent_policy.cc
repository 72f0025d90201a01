#include "launcher/agent/agent_policy.h"

#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/signal_names.h"

namespace muster::launcher {
namespace {

// For the goodbye: why this node leaves. Empty after a verdict, which needs no reason.
std::string ReasonToLeave(const RunResult& result) {
  if (const auto* interrupted = std::get_if<Interrupted>(&result)) {
    return absl::StrCat("interrupted by ", base::SignalName(interrupted->signal));
  }
  if (const auto* left = std::get_if<LeftEarly>(&result)) return left->why;
  if (const auto* failed = std::get_if<RendezvousFailed>(&result)) {
    return std::string(failed->status.message());
  }
  if (const auto* failed = std::get_if<NodeFailed>(&result)) {
    return std::string(failed->status.message());
  }
  return "";
}

}  // namespace

Actions AgentPolicy::Begin() {
  return {JoinRound{round_}};
}

Actions AgentPolicy::OnDirective(const rendezvous::Directive& directive) {
  return std::visit([this](const auto& kind) { return Handle(kind); }, directive);
}

Actions AgentPolicy::Handle(const rendezvous::Welcome&) {
  return {};
}

Actions AgentPolicy::Handle(const rendezvous::Waiting& waiting) {
  if (waiting.sentence.empty() || state_ != State::kJoining) return {};
  return {Tell{Tell::kWarning, waiting.sentence}};
}

Actions AgentPolicy::Handle(const rendezvous::Assignment& assignment) {
  const rendezvous::RoundId id = assignment.id();
  const bool known = id.incarnation == round_.incarnation && id.number <= round_.number;
  if (state_ != State::kJoining || known) return {};
  state_ = State::kRunning;
  next_ = Next::kUndecided;
  round_ = id;
  return {Tell{Tell::kNotice,
               absl::StrCat("round ", assignment.round, ": this node ", assignment.rank_reason)},
          StartWorkers{assignment}};
}

Actions AgentPolicy::Handle(const rendezvous::Stop& stop) {
  if (state_ == State::kJoining) {
    // The Assignment was lost with a connection, and the round is over already: its place is asked
    // for anew.
    const bool known = stop.incarnation == round_.incarnation && stop.round <= round_.number;
    if (known || next_ != Next::kUndecided) return {};
    round_ = stop.id();
    return {JoinRound{round_}};
  }
  if (stop.id() != round_ || state_ == State::kLeaving || state_ == State::kFinished) return {};
  Actions actions = {
      Tell{Tell::kWarning, absl::StrCat("round ", stop.round, " is over: ", stop.reason)}};
  if (next_ == Next::kUndecided) next_ = Next::kJoin;
  if (state_ == State::kRunning) {
    state_ = State::kStopping;
    actions.push_back(StopWorkers{SIGTERM});
  } else if (state_ == State::kDone || state_ == State::kFailed) {
    for (Action& action : Proceed()) actions.push_back(std::move(action));
  }
  return actions;
}

Actions AgentPolicy::Handle(const rendezvous::Fenced& fenced) {
  // A report that crossed a Stop or a Verdict on its way, which says what to do.
  return {Tell{Tell::kNotice, fenced.sentence}};
}

Actions AgentPolicy::Handle(const rendezvous::Verdict& verdict) {
  return End(verdict, Next::kLeave, SIGTERM);
}

Actions AgentPolicy::Handle(const rendezvous::Refused& refused) {
  return End(RendezvousFailed{absl::FailedPreconditionError(
                 absl::StrCat("the rendezvous refused this node: ", refused.sentence))},
             Next::kQuit, SIGTERM);
}

Actions AgentPolicy::Handle(const rendezvous::Notice& notice) {
  return {Tell{Tell::kWarning, notice.sentence}};
}

Actions AgentPolicy::Handle(const rendezvous::Heard&) {
  return {};
}

Actions AgentPolicy::Handle(const rendezvous::Evicted& evicted) {
  switch (state_) {
    case State::kJoining:
      return {Tell{Tell::kWarning, absl::StrCat(evicted.sentence, "; rejoining")},
              JoinRound{round_}};
    case State::kRunning:
    case State::kStopping:
      return KillAndRejoin(evicted.sentence);
    case State::kFailed:
      return KillAndRejoin(evicted.sentence);
    case State::kDone:
      // The others may still be at work, or the job has ended: the rendezvous knows.
      state_ = State::kJoining;
      return {
          Tell{Tell::kWarning,
               absl::StrCat(evicted.sentence,
                            "; its workers have succeeded; rejoining to learn how the job stands")},
          JoinRound{round_}};
    case State::kLeaving:
      return OnGoodbyeHeard();
    case State::kFinished:
      return {};
  }
  return {};
}

Actions AgentPolicy::OnFenced(const std::string& why) {
  return workers_run() ? KillAndRejoin(why) : Actions();
}

Actions AgentPolicy::KillAndRejoin(const std::string& why) {
  Actions actions;
  if (next_ == Next::kUndecided) {
    next_ = Next::kJoin;
    actions.push_back(
        Tell{Tell::kWarning,
             absl::StrCat(why, "; ",
                          workers_run() ? "killing its workers and rejoining" : "rejoining")});
  }
  if (!workers_run()) {
    for (Action& action : Proceed()) actions.push_back(std::move(action));
    return actions;
  }
  state_ = State::kStopping;
  actions.push_back(KillWorkers{});
  return actions;
}

Actions AgentPolicy::OnLost(const absl::Status& status) {
  return End(RendezvousFailed{status}, Next::kQuit, SIGTERM);
}

Actions AgentPolicy::OnStartTooLate(const std::string& why) {
  state_ = State::kFailed;
  return KillAndRejoin(why);
}

Actions AgentPolicy::OnWorkersStarted() {
  if (state_ != State::kRunning) return {};
  return {ReportStarted{round_}};
}

Actions AgentPolicy::OnFirstFailure(const rendezvous::WorkerFailure& failure) {
  // Once the run or the round is over here, workers that fail do so because of it.
  if (state_ != State::kRunning) return {};
  state_ = State::kStopping;
  return {ReportExited{round_, {.succeeded = false, .failure = failure}}};
}

Actions AgentPolicy::OnWorkersGone(bool succeeded) {
  const bool unasked = state_ == State::kRunning;
  state_ = unasked && succeeded ? State::kDone : State::kFailed;
  if (state_ == State::kFailed) return Proceed();
  return {ReportExited{round_, {.succeeded = true}}};
}

Actions AgentPolicy::OnCannotStart(const absl::Status& status) {
  state_ = State::kFailed;
  return End(NodeFailed{status}, Next::kLeave, SIGTERM);
}

Actions AgentPolicy::OnSignal(int signal) {
  if (!run_ends()) return End(Interrupted{signal}, Next::kLeave, signal);
  if (workers_run() && std::holds_alternative<LeftEarly>(*result_)) {
    // It is the user's first: the workers are being stopped, and have their time.
    result_ = Interrupted{signal};
    return {};
  }
  if (workers_run()) return {KillWorkers{}};
  if (state_ == State::kLeaving) {
    // Nobody hears the goodbye, or it takes the user too long.
    state_ = State::kFinished;
    return {Finish{}};
  }
  return {};
}

Actions AgentPolicy::OnDrained(const std::string& why) {
  if (!is_undisturbed() && state_ != State::kJoining) return {};
  return {AskToLeave{round_, why}};
}

Actions AgentPolicy::OnMayLeave(const std::string& why) {
  return End(LeftEarly{why}, Next::kLeave, SIGTERM);
}

Actions AgentPolicy::OnGoodbyeHeard() {
  if (state_ == State::kFinished) return {};
  state_ = State::kFinished;
  return {Finish{}};
}

Actions AgentPolicy::End(RunResult result, Next next, int signal) {
  Actions actions;
  if (run_ends()) {
    // What ended the run first stays its result; but without a rendezvous no goodbye will be heard.
    if (next == Next::kQuit) next_ = Next::kQuit;
    if (next_ == Next::kQuit && state_ == State::kLeaving) return OnGoodbyeHeard();
    return actions;
  }
  next_ = next;
  result_ = std::move(result);
  if (!workers_run()) return Proceed();
  if (std::holds_alternative<Interrupted>(*result_) ||
      std::holds_alternative<LeftEarly>(*result_)) {
    actions.push_back(SayLeaving{ReasonToLeave(*result_)});
  }
  if (state_ == State::kRunning) actions.push_back(StopWorkers{signal});
  state_ = State::kStopping;
  return actions;
}

// Once no worker is left: what comes next, if that is known.
Actions AgentPolicy::Proceed() {
  switch (next_) {
    case Next::kUndecided:
      // A failure was reported; the rendezvous will say Stop or Verdict.
      return {};
    case Next::kJoin:
      next_ = Next::kUndecided;
      state_ = State::kJoining;
      return {JoinRound{round_}};
    case Next::kLeave:
      state_ = State::kLeaving;
      return {SayGoodbye{ReasonToLeave(*result_)}};
    case Next::kQuit:
      state_ = State::kFinished;
      return {Finish{}};
  }
  return {};
}

}  // namespace muster::launcher
