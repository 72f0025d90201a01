#include "launcher/run/agent_core.h"

#include <csignal>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "base/text.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::launcher {
namespace {

constexpr char kTimeIsOver[] = "the workers may not run any longer without a rendezvous";

const char* EndName(worker::GroupEnd end) {
  switch (end) {
    case worker::GroupEnd::kSucceeded:
      return "succeeded";
    case worker::GroupEnd::kFailed:
      return "failed";
    case worker::GroupEnd::kStopped:
      return "stopped";
  }
  return "";
}

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

// Which workers had to be killed of those that were told to stop; empty: none.
std::string DescribeKilled(const worker::GroupResult& result) {
  std::vector<std::string> ranks;
  for (const worker::WorkerExit& exit : result.exits) {
    const bool killed = exit.stopped_by_group && exit.status && exit.status->signal == SIGKILL;
    if (killed) ranks.push_back(absl::StrCat(exit.rank));
  }
  if (ranks.empty()) return "";
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", base::ShortList(ranks),
                      " did not stop when asked to and needed SIGKILL");
}

}  // namespace

void AgentCore::Join() {
  state_ = State::kJoining;
  port_.Note({.kind = AgentEventKind::kJoining});
  if (!options_.checks_health || !unfit_.empty()) return port_.Join(round_, unfit_);
  checking_after_ = round_;
  port_.CheckHealth();
}

void AgentCore::OnHealth(const absl::Status& status) {
  const auto after = std::exchange(checking_after_, std::nullopt);
  if (!after.has_value()) return;
  const std::string unfit(status.message());
  if (!status.ok()) NoteOfRound(AgentEventKind::kUnfit, unfit);
  port_.Join(*after, unfit);
}

void AgentCore::OnDirective(const rendezvous::Directive& directive, rendezvous::TimePoint now) {
  std::visit([this, now](const auto& kind) { Handle(kind, now); }, directive);
}

void AgentCore::Handle(const rendezvous::Welcome& welcome, rendezvous::TimePoint) {
  version_ = welcome.version;
}

void AgentCore::Handle(const rendezvous::Waiting& waiting, rendezvous::TimePoint) {
  port_.Note({.kind = AgentEventKind::kWaiting, .round = waiting.round, .cause = waiting.sentence});
  if (!waiting.sentence.empty() && state_ == State::kJoining) Warn(waiting.sentence);
}

void AgentCore::Handle(const rendezvous::Assignment& assignment, rendezvous::TimePoint now) {
  const rendezvous::RoundId id = assignment.id();
  const bool known = id.incarnation == round_.incarnation && id.number <= round_.number;
  if (state_ != State::kJoining || known) return;
  next_ = Next::kUndecided;
  round_ = id;
  nodes_ = assignment.group_world_size;
  port_.Tell(AgentPort::Level::kNotice,
             absl::StrCat("round ", assignment.round, ": this node ", assignment.rank_reason));
  // The Assignment was under way for long, or this process stood still: another round may run by
  // now.
  if (deadline_.has_value() && *deadline_ <= now) {
    state_ = State::kFailed;
    NoteOfRound(AgentEventKind::kFenced, kTimeIsOver);
    return KillAndRejoin(kTimeIsOver);
  }
  state_ = State::kRunning;
  workers_have_grace_ = false;
  port_.Note({.kind = AgentEventKind::kAssigned,
              .round = assignment.round,
              .cause = assignment.rank_reason,
              .place = EventPlace{.incarnation = assignment.incarnation,
                                  .node_rank = assignment.group_rank,
                                  .nodes = assignment.group_world_size,
                                  .first_rank = assignment.base_rank,
                                  .world_size = assignment.world_size}});
  port_.StartWorkers(assignment);
}

void AgentCore::Handle(const rendezvous::Stop& stop, rendezvous::TimePoint) {
  port_.Note({.kind = AgentEventKind::kToldToStop, .round = stop.round, .cause = stop.reason});
  if (state_ == State::kJoining) {
    // The Assignment was lost with a connection, and the round is over already: this node asks for
    // the next one.
    const bool known = stop.incarnation == round_.incarnation && stop.round <= round_.number;
    if (known || next_ != Next::kUndecided) return;
    round_ = stop.id();
    return Join();
  }
  if (stop.id() != round_ || state_ == State::kLeaving || state_ == State::kFinished) return;
  Warn(absl::StrCat("round ", stop.round, " is over: ", stop.reason));
  if (next_ == Next::kUndecided) next_ = Next::kJoin;
  if (state_ == State::kRunning) return StopWorkers(SIGTERM);
  if (state_ != State::kStopping) Proceed();
}

void AgentCore::Handle(const rendezvous::Fenced& fenced, rendezvous::TimePoint) {
  // A report that crossed a Stop or a Verdict on its way, which says what to do.
  port_.Tell(AgentPort::Level::kNotice, fenced.sentence);
}

void AgentCore::Handle(const rendezvous::Verdict& verdict, rendezvous::TimePoint) {
  NoteOfRound(AgentEventKind::kVerdict, verdict.sentence);
  End(verdict, Next::kLeave, SIGTERM);
}

void AgentCore::Handle(const rendezvous::Refused& refused, rendezvous::TimePoint) {
  End(RendezvousFailed{absl::FailedPreconditionError(
          absl::StrCat("the rendezvous refused this node: ", refused.sentence))},
      Next::kQuit, SIGTERM);
}

void AgentCore::Handle(const rendezvous::Notice& notice, rendezvous::TimePoint) {
  if (notice.kind != rendezvous::Notice::Kind::kOther) {
    const bool begins = notice.kind == rendezvous::Notice::Kind::kStraggler;
    port_.Note({.kind = begins ? AgentEventKind::kStraggler : AgentEventKind::kStragglerOver,
                .round = round(),
                .rank = notice.rank.value_or(-1),
                .cause = notice.sentence});
  }
  Warn(notice.sentence);
}

void AgentCore::Handle(const rendezvous::Evicted& evicted, rendezvous::TimePoint) {
  NoteOfRound(AgentEventKind::kEvicted, evicted.sentence);
  switch (state_) {
    case State::kJoining:
      Warn(absl::StrCat(evicted.sentence, "; rejoining"));
      return Join();
    case State::kRunning:
    case State::kStopping:
    case State::kFailed:
      return KillAndRejoin(evicted.sentence);
    case State::kDone:
      // The others may still be at work, or the job has ended: the rendezvous knows.
      Warn(absl::StrCat(evicted.sentence,
                        "; its workers have succeeded; rejoining to learn the job's state"));
      return Join();
    case State::kLeaving:
      return Finish();
    case State::kFinished:
      return;
  }
}

void AgentCore::Handle(const rendezvous::LeaveAnswer& answer, rendezvous::TimePoint) {
  // Unless the run ends for another reason by now. Workers may be stopping or gone: the rendezvous
  // goes on without them.
  if (result_ || drained_.empty()) return;
  answer.may_leave ? LeaveEarly() : Stay(answer.why_not);
}

void AgentCore::OnFenced(const std::string& why) {
  if (!workers_run()) return;
  NoteOfRound(AgentEventKind::kFenced, why);
  KillAndRejoin(why);
}

void AgentCore::OnLostTouch() {
  OnFenced(kTimeIsOver);
}

void AgentCore::OnLost(const absl::Status& status) {
  NoteOfRound(AgentEventKind::kLost, std::string(status.message()));
  End(RendezvousFailed{status}, Next::kQuit, SIGTERM);
}

void AgentCore::OnCannotStart(const absl::Status& status) {
  state_ = State::kFailed;
  End(NodeFailed{status}, Next::kLeave, SIGTERM);
}

void AgentCore::OnWorkersStarted() {
  NoteOfRound(AgentEventKind::kWorkersStarted, "");
  if (state_ == State::kRunning) port_.Say(rendezvous::WorkersStarted{round_});
}

void AgentCore::OnFirstFailure(const rendezvous::WorkerFailure& failure) {
  workers_have_grace_ = options_.grace.count() > 0;
  Warn(absl::StrCat("rank ", failure.rank, " ", failure.what));
  port_.Note({.kind = AgentEventKind::kWorkerFailed,
              .round = round(),
              .rank = failure.rank,
              .pid = static_cast<int>(failure.pid),
              .cause = failure.what});
  // Once the run or the round is over here, workers that fail do so because of it.
  if (state_ != State::kRunning) return;
  state_ = State::kStopping;
  port_.Say(rendezvous::WorkersExited{round_, {.succeeded = false, .failure = failure}});
}

void AgentCore::OnWorkersGone(const worker::GroupResult& result) {
  for (const worker::WorkerExit& exit : result.exits) {
    if (exit.status) continue;
    unfit_ = absl::StrCat("rank ", exit.rank, " (pid ", exit.pid, ") cannot be killed: it ",
                          exit.stuck.empty() ? "does not end" : exit.stuck);
  }
  NoteOfRound(AgentEventKind::kWorkersGone, EndName(result.end));
  const std::string killed = workers_have_grace_ ? DescribeKilled(result) : "";
  if (!killed.empty()) Warn(killed);
  const bool unasked = state_ == State::kRunning;
  const bool succeeded = unasked && result.end == worker::GroupEnd::kSucceeded;
  state_ = succeeded ? State::kDone : State::kFailed;
  if (!succeeded) return Proceed();
  port_.Say(rendezvous::WorkersExited{round_, {.succeeded = true}});
}

void AgentCore::OnSignal(int signal) {
  Warn(DescribeSignal(signal));
  NoteOfRound(AgentEventKind::kSignal, base::SignalName(signal));
  if (!run_ends()) return End(Interrupted{signal}, Next::kLeave, signal);
  if (workers_run()) {
    if (!leaves_early()) return port_.StopWorkers(SIGKILL);
    // It is the user's first: the workers are being stopped, and have their time.
    result_ = Interrupted{signal};
  } else if (state_ == State::kLeaving) {
    // Nobody hears the goodbye, or it takes the user too long.
    Finish();
  }
}

std::string AgentCore::DescribeSignal(int signal) const {
  const std::string received = absl::StrCat("received ", base::SignalName(signal));
  if (!workers_run()) return received;
  const bool stops = !run_ends() && state_ == State::kRunning;
  const bool kills = run_ends() && !leaves_early();
  if (kills || (stops && options_.grace.count() == 0)) return received + "; killing the workers";
  const std::string left = stops ? GraceInWords() : "the workers are already being stopped";
  const char* const what_kills =
      options_.sigterm_counts_once && signal == SIGTERM
          ? ", and SIGINT kills them at once; SIGTERM does not, as Slurm repeats it"
          : ", and a second signal kills them at once";
  return absl::StrCat(received, "; ", left, what_kills);
}

std::string AgentCore::GraceInWords() const {
  if (options_.grace.count() == 0) return "the workers are killed";
  if (options_.grace == std::chrono::milliseconds::max()) {
    return "the workers may take as long as they need to stop";
  }
  return absl::StrCat("the workers have ", base::Seconds(options_.grace), " to stop");
}

void AgentCore::OnDrained(const std::string& why) {
  // What asks the workers to end anyway comes first; where that is not the end, it is asked again.
  if (result_) return;
  if (version_ >= rendezvous::kLeaveAnswers && !options_.serves_rendezvous) {
    drained_ = why;
    const bool asks = state_ == State::kRunning || state_ == State::kJoining;
    if (asks) port_.Say(rendezvous::AskToLeave{round_, why});
    return;
  }
  if (state_ != State::kRunning) return;
  drained_ = why;
  const bool is_fixed = options_.min_nodes == options_.max_nodes;
  if (options_.serves_rendezvous && !is_fixed) return Stay("the rendezvous is served here");
  if (nodes_ > options_.min_nodes) return LeaveEarly();
  Stay(rendezvous::WhyNodeIsNeeded(options_.min_nodes, options_.max_nodes, nodes_));
}

void AgentCore::Stay(const std::string& why_not) {
  if (std::exchange(told_it_stays_, true)) return;
  Warn(absl::StrCat("this node stays in the job, although ", drained_, ": ", why_not));
}

void AgentCore::LeaveEarly() {
  const std::string left = state_ == State::kRunning ? absl::StrCat("; ", GraceInWords()) : "";
  Warn(absl::StrCat("this node leaves the job, as ", drained_, left));
  NoteOfRound(AgentEventKind::kDrained, drained_);
  End(LeftEarly{drained_}, Next::kLeave, SIGTERM);
}

void AgentCore::OnGoodbyeHeard() {
  if (state_ != State::kFinished) Finish();
}

void AgentCore::StopWorkers(int signal) {
  state_ = State::kStopping;
  workers_have_grace_ = options_.grace.count() > 0;
  NoteOfRound(AgentEventKind::kStopping, base::SignalName(signal));
  port_.StopWorkers(signal);
}

void AgentCore::KillAndRejoin(const std::string& why) {
  if (next_ == Next::kUndecided) {
    next_ = Next::kJoin;
    Warn(
        absl::StrCat(why, "; ", workers_run() ? "killing its workers and rejoining" : "rejoining"));
  }
  if (!workers_run()) return Proceed();
  state_ = State::kStopping;
  port_.StopWorkers(SIGKILL);
}

void AgentCore::End(RunResult result, Next next, int signal) {
  if (run_ends()) {
    // What ended the run first stays its result; but without a rendezvous no goodbye will be heard.
    if (next == Next::kQuit) next_ = Next::kQuit;
    if (next_ == Next::kQuit && state_ == State::kLeaving) Finish();
    return;
  }
  next_ = next;
  result_ = std::move(result);
  if (!workers_run()) return Proceed();
  const bool runs = std::exchange(state_, State::kStopping) == State::kRunning;
  if (std::holds_alternative<Interrupted>(*result_) || leaves_early()) {
    port_.Say(rendezvous::Leaving{ReasonToLeave(*result_)});
  }
  if (runs) StopWorkers(signal);
}

void AgentCore::Proceed() {
  switch (next_) {
    case Next::kUndecided:
      // A failure was reported; the rendezvous will say Stop or Verdict.
      return;
    case Next::kJoin:
      next_ = Next::kUndecided;
      return Join();
    case Next::kLeave:
      state_ = State::kLeaving;
      checking_after_.reset();
      return port_.Leave(ReasonToLeave(*result_));
    case Next::kQuit:
      return Finish();
  }
}

void AgentCore::Finish() {
  state_ = State::kFinished;
  checking_after_.reset();
  port_.Finish(*result_);
}

void AgentCore::NoteOfRound(AgentEventKind kind, std::string cause) {
  port_.Note({.kind = kind, .round = round(), .cause = std::move(cause)});
}

}  // namespace muster::launcher
