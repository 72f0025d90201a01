#include "rendezvous/client/agent_session.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"

#include "base/text.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kFirstPause = milliseconds(50);
constexpr Duration kLongestPause = seconds(1);
// For an attempt to come back, from the first SYN to the daemon's answer.
constexpr Duration kLongestAttempt = seconds(5);
// The same where the next place may be the right one.
constexpr Duration kLongestAttemptOfSeveral = seconds(1);
// For the daemon to hear the goodbye.
constexpr Duration kLongestGoodbye = seconds(5);

// What follows from the death of a daemon without a state directory, and what to do about it.
constexpr char kForgetful[] =
    "; it kept the job in memory only, so there is nothing to reconnect to (`musterd "
    "--state-dir=DIR` saves its jobs and survives this)";

}  // namespace

AgentSession::AgentSession(Options options)
    : options_(std::move(options)),
      random_(options_.seed),
      session_(options_.new_session()),
      pause_(kFirstPause) {}

void AgentSession::Join(const JoinRequest& request, TimePoint now) {
  if (IsDone()) return;
  JoinRequest join = request;
  join.session = session_;
  join.speaks = options_.speaks;
  join.connection = connection_;
  said_.clear();
  said_.push_back(join);
  if (state_ == State::kIdle) {
    gives_up_ = now + (standing_ == Standing::kUnheard ? options_.connect_timeout
                                                       : options_.reconnect_timeout);
    return OpenConnection(now);
  }
  if (state_ == State::kEvicted) {
    state_ = State::kJoining;
    asked_at_ = now;
  }
  if (state_ == State::kJoining || state_ == State::kAttending) Do(Send{std::move(join)});
}

void AgentSession::Say(Event event) {
  const bool between_two_attendances = said_.empty() && standing_ != Standing::kAttends;
  if (IsDone() || between_two_attendances) return;
  if (std::holds_alternative<AskToLeave>(event)) ForgetQuestion();
  if (state_ == State::kJoining || state_ == State::kAttending) Do(Send{event});
  said_.push_back(std::move(event));
}

void AgentSession::ForgetQuestion() {
  std::erase_if(said_, [](const Event& said) { return std::holds_alternative<AskToLeave>(said); });
}

void AgentSession::Leave(const std::string& reason, TimePoint now) {
  std::erase_if(actions_, [](const Action& action) {
    return !std::holds_alternative<Connect>(action) && !std::holds_alternative<Send>(action) &&
           !std::holds_alternative<Abandon>(action);
  });
  if (state_ == State::kAttending) {
    state_ = State::kLeaving;
    gives_up_ = now + kLongestGoodbye;
    Do(Send{Goodbye{reason}});
    return Do(FinishSending{});
  }
  // Nobody to tell: the lease, if there is one, ends by itself.
  Cut();
  state_ = State::kOver;
  Do(Left{});
}

void AgentSession::OnDirective(std::uint64_t connection, const Directive& directive,
                               TimePoint now) {
  if (connection != connection_ || !HasConnection() || IsDone()) return;
  if (standing_ == Standing::kUnheard) {
    standing_ = Standing::kKnown;
    gives_up_.reset();
  }
  if (const auto* welcome = std::get_if<Welcome>(&directive)) {
    // One that is older than this node does not know that it is.
    std::string objection = VersionObjection({welcome->version, welcome->version}, options_.speaks);
    if (!objection.empty()) return OnDirective(connection, Refused{std::move(objection)}, now);
  }
  if (const auto* heard = std::get_if<Heard>(&directive)) {
    keeper_.OnHeard(heard->number);
    MoveDeadline();
    return TellHeld(now);
  }
  if (const auto* welcome = std::get_if<Welcome>(&directive)) HandleWelcome(*welcome, now);
  if (std::holds_alternative<Evicted>(directive)) HandleEvicted(now);
  if (std::holds_alternative<LeaveAnswer>(directive)) ForgetQuestion();
  if (std::holds_alternative<Refused>(directive)) {
    state_ = State::kRefused;
    gives_up_.reset();
    held_.clear();
  }
  TellOrHold(directive, now);
}

void AgentSession::HandleWelcome(const Welcome& welcome, TimePoint now) {
  welcome_ = welcome;
  pause_ = kFirstPause;
  failed_places_ = 0;
  keeper_.OnNewConnection();
  keeper_.OnWelcome(welcome.lease, welcome.durable, asked_at_);
  standing_ = Standing::kAttends;
  if (welcome.version < kLeaveAnswers) ForgetQuestion();
  if (std::exchange(state_, State::kAttending) == State::kReturning) {
    for (const Event& event : said_) Do(Send{event});
  }
  tells_all_ = true;
  // The first beat comes at once: over a long way the answer to the Join has used up much of the
  // lease.
  if (welcome.keep_alive > Duration::zero()) Beat(now);
  MoveDeadline();
  EndOutage(now);
}

// Whatever was said to this session goes with it. The deadline that was told stays: workers that
// run must be dead by then.
void AgentSession::HandleEvicted(TimePoint now) {
  standing_ = Standing::kKnown;
  state_ = State::kEvicted;
  session_ = options_.new_session();
  said_.clear();
  held_.clear();
  keeper_ = {};
  EndOutage(now);
}

// Workers that are started on a lease which is about to end would be killed at once. So it is: when
// it took long to connect, or when this process stood still. The next beat that is answered tells.
bool AgentSession::LeaseIsShort(TimePoint now) const {
  const std::optional<TimePoint> deadline = keeper_.deadline();
  return deadline && now + welcome_.lease / 3 > *deadline;
}

void AgentSession::TellOrHold(const Directive& directive, TimePoint now) {
  const bool starts = std::holds_alternative<Assignment>(directive);
  if (!held_.empty() || (starts && LeaseIsShort(now))) {
    held_.push_back(directive);
  } else {
    Do(Tell{directive});
  }
}

void AgentSession::TellHeld(TimePoint now) {
  if (held_.empty() || LeaseIsShort(now)) return;
  for (Directive& directive : std::exchange(held_, {})) Do(Tell{std::move(directive)});
}

void AgentSession::OnConnectionEnded(std::uint64_t connection, const ConnectionError& error,
                                     TimePoint now) {
  if (connection != connection_ || !HasConnection()) return;
  if (state_ == State::kLeaving || state_ == State::kRefused) {
    if (std::exchange(state_, State::kOver) == State::kLeaving) Do(Left{});
    return;
  }
  HandleBroken(error, now);
}

// The connection is no more.
void AgentSession::HandleBroken(const ConnectionError& error, TimePoint now) {
  using Kind = ConnectionError::Kind;
  error_ = error;
  held_.clear();
  keeper_.OnNewConnection();
  Pause(now);
  if (standing_ == Standing::kUnheard) {
    if (error.kind == Kind::kForeign) return GiveUp();
    // Those that stand by refuse connections, and that is no trouble.
    if (failed_places_ != 0 || std::exchange(troubled_, true)) return;
    return Do(Trouble{absl::StrCat("cannot reach the rendezvous at ", options_.where,
                                   " yet: ", error_.cause, "; trying for ",
                                   base::Seconds(options_.connect_timeout))});
  }
  if (error.kind == Kind::kRefused) {
    FenceIfDue(now);
    const bool is_dead = options_.trust_refusals && options_.places == 1;
    if (!welcome_.durable && (is_dead || !LeaseRuns(now))) {
      TakeDeadlineBack(now);
      return GiveUp(kForgetful);
    }
    if (is_dead) {
      keeper_.OnNobodyDecides(attempt_began_);
      MoveDeadline();
    }
  }
  if (standing_ == Standing::kAttends && !welcome_.knock_secret.empty()) {
    Do(LivenessProbe{session_, welcome_.knock_secret});
  }
  if (out_since_) return;
  out_since_ = now;
  gives_up_ = now + options_.reconnect_timeout;
  Do(OutOfTouch{absl::StrCat("the connection to the rendezvous at ", options_.where,
                             " broke: ", error_.cause)});
}

void AgentSession::OnPaused(const SessionToken& session, TimePoint sent) {
  if (session != session_ || !attends() || IsDone()) return;
  keeper_.OnNobodyDecides(sent);
  MoveDeadline();
}

void AgentSession::OnGone(const SessionToken& session, TimePoint now) {
  if (session != session_ || !attends() || IsDone()) return;
  FenceIfDue(now);
  error_.cause = "its process has died";
  TakeDeadlineBack(now);
  GiveUp(kForgetful);
}

void AgentSession::OpenConnection(TimePoint now) {
  attempt_began_ = asked_at_ = now;
  ++connection_;
  Do(Connect{
      .connection = connection_,
      .place = place_,
      .to_known_peer = options_.places == 1 && error_.kind == ConnectionError::Kind::kUnresolved});
  for (Event& event : said_) {
    if (auto* join = std::get_if<JoinRequest>(&event)) join->connection = connection_;
  }
  if (standing_ == Standing::kAttends) {
    state_ = State::kReturning;
    return Do(Send{Resume{session_, connection_, options_.speaks}});
  }
  state_ = State::kJoining;
  for (const Event& event : said_) Do(Send{event});
}

// Where the daemon may be besides, before it is waited for.
bool AgentSession::TriesNextPlace() {
  place_ = (place_ + 1) % options_.places;
  failed_places_ = (failed_places_ + 1) % options_.places;
  return failed_places_ != 0;
}

void AgentSession::Pause(TimePoint now) {
  state_ = State::kPausing;
  if (TriesNextPlace()) {
    pause_ends_ = now;
    return;
  }
  // Half of the pause is left to chance, so that a thousand nodes do not come back as one.
  std::uniform_real_distribution<double> chance(0.5, 1.0);
  pause_ends_ = now + std::chrono::duration_cast<Duration>(pause_ * chance(random_));
  // Soon enough to be back within a short lease.
  const Duration longest = welcome_.lease > Duration::zero()
                               ? std::clamp(welcome_.lease / 3, kFirstPause, kLongestPause)
                               : kLongestPause;
  pause_ = std::min(2 * pause_, longest);
}

void AgentSession::EndPause(TimePoint now) {
  // After an eviction there is nothing to say until the next Join.
  if (said_.empty() && standing_ != Standing::kAttends) {
    state_ = State::kIdle;
  } else {
    OpenConnection(now);
  }
}

void AgentSession::EndOutage(TimePoint now) {
  if (!out_since_) return;
  gives_up_.reset();
  Do(BackInTouch{now - *std::exchange(out_since_, std::nullopt)});
}

void AgentSession::GiveUp(const char* consequence) {
  Cut();
  state_ = State::kOver;
  if (standing_ != Standing::kUnheard) {
    return Do(Lost{absl::UnavailableError(absl::StrCat("the rendezvous at ", options_.where,
                                                       " is gone: ", error_.cause, consequence))});
  }
  if (error_.kind == ConnectionError::Kind::kForeign) {
    return Do(Lost{absl::UnavailableError(
        absl::StrCat("the rendezvous at ", options_.where, " cannot be joined: ", error_.cause))});
  }
  Do(Lost{absl::UnavailableError(
      absl::StrCat("cannot reach the rendezvous at ", options_.where, " within ",
                   base::Seconds(options_.connect_timeout), ": ",
                   error_.cause.empty() ? "it does not answer" : error_.cause))});
}

void AgentSession::Beat(TimePoint now) {
  next_beat_ = now + welcome_.keep_alive;
  KeepAlive beat{.heard = keeper_.last_heard()};
  beat.number = keeper_.Beat(now);
  const bool all = std::exchange(tells_all_, false);
  if (options_.progress) beat.progress = options_.progress(all);
  Do(Send{std::move(beat)});
}

// Nobody will give this node's place away any more. A lease that has ended may have ended at the
// daemon, too, before that died.
void AgentSession::TakeDeadlineBack(TimePoint now) {
  if (LeaseRuns(now)) Do(Deadline{});
}

void AgentSession::FenceIfDue(TimePoint now) {
  const std::optional<TimePoint> deadline = keeper_.deadline();
  if (!deadline || now < *deadline || fenced_for_ == deadline) return;
  fenced_for_ = deadline;
  Do(Fenced{absl::StrCat("nothing was heard from the rendezvous at ", options_.where, " for ",
                         base::Seconds(SelfFenceAfter(welcome_.lease)),
                         error_.cause.empty() ? "" : absl::StrCat(" (", error_.cause, ")"),
                         ", and it may give this node's place to another")});
}

bool AgentSession::LeaseRuns(TimePoint now) const {
  const std::optional<TimePoint> deadline = keeper_.deadline();
  return deadline && now < *deadline;
}

std::optional<TimePoint> AgentSession::DoubtfulFrom() const {
  if (state_ == State::kReturning) {
    return attempt_began_ + (options_.places > 1 ? kLongestAttemptOfSeveral : kLongestAttempt);
  }
  if (state_ != State::kAttending) return std::nullopt;
  const std::optional<TimePoint> doubtful = keeper_.doubtful_from();
  if (doubtful && options_.places > 1) return *doubtful - welcome_.lease / 3;
  return doubtful;
}

void AgentSession::Tick(TimePoint now) {
  if (state_ == State::kOver) return;
  if (state_ == State::kLeaving) {
    if (now < *gives_up_) return;
    Cut();
    state_ = State::kOver;
    return Do(Left{});
  }
  FenceIfDue(now);
  if (gives_up_ && now >= *gives_up_) return GiveUp();
  const std::optional<TimePoint> doubtful = DoubtfulFrom();
  if (doubtful && now >= *doubtful) {
    Cut();
    return HandleBroken({.cause = "it has stopped answering"}, now);
  }
  const bool beats = welcome_.keep_alive > Duration::zero();
  if (state_ == State::kAttending && beats && now >= next_beat_) Beat(now);
  if (state_ == State::kPausing && now >= pause_ends_) EndPause(now);
}

std::optional<TimePoint> AgentSession::NextDeadline() const {
  if (state_ == State::kOver) return std::nullopt;
  if (state_ == State::kLeaving) return gives_up_;
  std::optional<TimePoint> due = keeper_.deadline();
  if (due && fenced_for_ == due) due.reset();
  const auto consider = [&due](std::optional<TimePoint> time) {
    if (time) due = std::min(due.value_or(*time), *time);
  };
  consider(gives_up_);
  consider(DoubtfulFrom());
  if (state_ == State::kPausing) consider(pause_ends_);
  if (state_ == State::kAttending && welcome_.keep_alive > Duration::zero()) consider(next_beat_);
  return due;
}

std::optional<AgentSession::Action> AgentSession::NextAction() {
  if (actions_.empty()) return std::nullopt;
  Action action = std::move(actions_.front());
  actions_.pop_front();
  return action;
}

}  // namespace muster::rendezvous
