// One agent's session of a job, over one connection after another: what a client decides,
// without its connections and its timers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"

#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/progress.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// An agent's side of its lease: how long its workers may run without a word from the rendezvous.
// The rendezvous gives a node's ranks away when it has not heard from the node for its lease. By
// then the node's workers must be dead, or two rounds' workers would run at the same time. So the
// agent counts its lease from when it *sent* the last message that was answered, which is earlier
// than when that was heard, and counts only five sixths of it (jepsen.io on etcd 3.4.3: a lease
// alone is not a lock).
//
// One other thing counts: proof that the daemon is dead and that nobody decides anything until it
// is started again (wire/liveness_probe.h). A daemon that remembers its jobs (Welcome::durable)
// then gives every node a whole lease from that start, so the lease runs from when the question was
// sent. The proof does not renew a lease that had ended by then: it may also have ended at the
// daemon while that was alive. Silence proves nothing, and neither does a refused connection:
// something on the way may refuse it while the daemon is alive and gives ranks away.
//
// Time comes in, from this machine's monotonic clock; no other clock is compared with it. Pure; not
// thread-safe.
class LeaseKeeper {
 public:
  // The rendezvous has answered the Join or Resume that was sent at `sent`.
  void OnWelcome(Duration lease, bool durable, TimePoint sent);

  // The number of a keep-alive that is sent now.
  std::int64_t Beat(TimePoint now);
  // That one was answered.
  void OnHeard(std::int64_t number);
  // The number of the last answered keep-alive; 0: none.
  std::int64_t last_heard() const { return last_heard_; }

  // At some time after `began` the daemon was dead, and nobody decided anything in its place.
  void OnNobodyDecides(TimePoint began);

  // When the workers must be dead; nullopt if there is no lease, or before OnWelcome.
  std::optional<TimePoint> deadline() const;

  // When the guard must kill them if the agent itself stands still: a little later, but still
  // before their ranks are given away.
  std::optional<TimePoint> last_deadline() const;

  // When a connection over which nothing has been answered is to be given up for a new one: half a
  // lease after the oldest unanswered beat was sent. nullopt without such a beat.
  std::optional<TimePoint> doubtful_from() const;

  // There is a new connection: beats that are on their way will not be answered.
  void OnNewConnection() { unanswered_.clear(); }

 private:
  void Answered(TimePoint sent);

  Duration lease_{};
  bool durable_ = false;
  std::optional<TimePoint> answered_;  // when the last answered message was sent
  std::int64_t last_beat_ = 0;
  std::int64_t last_heard_ = 0;
  std::map<std::int64_t, TimePoint> unanswered_;  // beats, and when they were sent
};

// Why a connection to the daemon stopped, whatever kind it was.

struct ConnectionError {
  enum class Kind {
    kBroken,      // or was never established
    kRefused,     // something on the way, or the daemon's machine, says that nobody listens there
    kUnresolved,  // the name could not be resolved
    kForeign,  // what answers is not a Muster rendezvous, or asks for another proof; to try again
               // would not help
  };

  // For people: "Connection refused", "its name does not resolve: Domain name not found".
  std::string cause;
  Kind kind = Kind::kBroken;
  // Another program than Muster may have answered: what it speaks would tell (probes.h).
  bool is_in_doubt = false;
};

// Events and the time come in, actions are fetched with NextAction. The states and transitions:
//
//   idle       --Join--> joining
//   joining    --Welcome--> attending; the connection ends: pausing
//   attending  --Evicted--> evicted; the connection ends or is doubted: pausing
//   returning  --Welcome--> attending; --Evicted--> evicted; it ends or is doubted: pausing
//   evicted    --Join--> joining; the connection ends: pausing
//   pausing    --it is over--> returning when it attends; joining when a Join waits; else idle
//   each of these --Refused--> refused, --Leave--> leaving when it attends over a connection, else
//   over, --giving up--> over
//
// - joining: a connection is tried or open, and the daemon does not know the session yet.
//   Everything said goes out at once, and again on the next connection if this one ends before the
//   Welcome, as the answer may have been lost; by the session the daemon knows that it is the same
//   node.
// - attending: the Welcome has come over this connection. Beats go out as often as it demands. A
//   connection over which a beat is not answered for half a lease is doubted, and cut for a new
//   one.
// - pausing: no connection; the next attempt is made after a growing, random pause, so that a
//   thousand nodes do not come back at the same moment.
// - returning: a connection on which Resume was sent. The daemon may no longer know us, so
//   everything said since the last Join, the Join included, is repeated only after its Welcome.
// - evicted: the connection is alive, but the session has ended. The next Join begins another
//   one, with another session. Anything said in between belongs to neither.
// - refused: the daemon no longer listens to this agent. Only Leave is left to do.
// - leaving: the goodbye is on its way. The end of the connection means that it was heard.
// - over: Lost or Left. Nothing follows, except Left when Leave is called after Lost.
//
// An agent that attends has a lease (LeaseKeeper), which only the daemon's own word prolongs.
// When it ends the listener is Fenced, whatever the state, and the machine keeps trying. A refused
// connection proves nothing: a firewall or a proxy refuses as well. So whenever a connection or an
// attempt has failed, the machine asks for a LivenessProbe during its pause: a question that only
// somebody on the daemon's machine can answer (wire/liveness_probe.h). "Paused" counts as the
// daemon's word, "gone" ends the session, and silence is just silence. A daemon that remembers
// nothing and refuses connections after the lease has ended is given up: nothing is left to wait
// for.
//
// Deterministic except for what it calls to ask; not thread-safe. Does nothing by itself: after
// each call its owner carries out the actions in order, and makes sure that Tick is called at
// NextDeadline.
//
// It has more members than most classes: beside the two states, what was said and may have to be
// repeated on the next connection, and the times of which NextDeadline is the first.
class AgentSession {
 public:
  struct Options {
    // The daemon, in messages.
    std::string where;
    // How long to keep trying until the daemon first answers.
    Duration connect_timeout = std::chrono::seconds(60);
    // How long to keep trying to come back when the connection has broken.
    Duration reconnect_timeout = std::chrono::minutes(10);
    // Only the daemon's own machine can refuse a connection in this network: then a refusal is as
    // good as the answer to a probe.
    bool trust_refusals = false;
    // In how many places it may be: daemons of which one leads, and the others refuse connections.
    // An attempt that fails is followed by one at the next place; there is a pause when all have
    // been tried. With several, a refusal proves nothing, and a connection is doubted after a
    // sixth of the lease, as another place may have taken over.
    int places = 1;
    SpokenVersions speaks{};
    // Makes a token that nobody can guess.
    std::function<SessionToken()> new_session;
    // What there is to tell of this node's ranks since it was last asked, or with `all` in this
    // round; asked with each keep-alive. Empty: nothing.
    std::function<Progress(bool all)> progress{};
    // For the random part of pauses.
    std::uint32_t seed = 1;
  };

  // Open a connection; there is no other one. Everything about it is reported with its number.
  struct Connect {
    std::uint64_t connection = 0;
    int place = 0;  // from 0
    // The daemon's name does not resolve at the moment: look where it was found before.
    bool to_known_peer = false;
  };
  // Over the connection, once that is there.
  struct Send {
    Event event;
  };
  // Everything has been said; the daemon ends the connection when it has heard it.
  struct FinishSending {};
  // Cut the connection. Nothing more about it is to be reported.
  struct Abandon {};
  // Ask at the daemon's address what has become of it, in parallel with everything else. An answer
  // that `secret` proves is OnPaused or OnGone; for anything else there is no event.
  struct LivenessProbe {
    SessionToken session;
    std::string secret;
  };
  // For the listener (rendezvous_client.h).
  struct Tell {
    Directive directive;
  };
  struct Trouble {
    std::string sentence;
  };
  struct OutOfTouch {
    std::string cause;
  };
  struct BackInTouch {
    Duration outage{};
  };
  struct Deadline {
    std::optional<TimePoint> time;
  };
  struct Fenced {
    std::string why;
  };
  struct Lost {
    absl::Status status;
  };
  struct Left {};
  using Action = std::variant<Connect, Send, FinishSending, Abandon, LivenessProbe, Tell, Trouble,
                              OutOfTouch, BackInTouch, Deadline, Fenced, Lost, Left>;

  explicit AgentSession(Options options);

  // What its agent wants. Of the listener's calls, these three only cause Left. Session and
  // connection are filled in here; everything else reaches the daemon as it is.
  void Join(const JoinRequest& request, TimePoint now);
  // Said now, and again on each connection until the next Join; AskToLeave only until it is
  // answered, and only to a daemon that answers it.
  void Say(Event event);
  // The last call. What the listener was still to be told is dropped, except Left.
  void Leave(const std::string& reason, TimePoint now);

  // What happens to connections; events of any but the last one change nothing.
  void OnDirective(std::uint64_t connection, const Directive& directive, TimePoint now);
  void OnConnectionEnded(std::uint64_t connection, const ConnectionError& error, TimePoint now);

  // The answer to a LivenessProbe of `session`, sent at `sent`: nobody decides anything until the
  // daemon is started again, and then each node has its whole lease.
  void OnPaused(const SessionToken& session, TimePoint sent);
  // The daemon, which remembered nothing, is dead: nobody will ever give this node's place away.
  void OnGone(const SessionToken& session, TimePoint now);

  // Does what is due; does nothing when called too early.
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  std::optional<Action> NextAction();

  // The daemon has welcomed the session, and has not said that it ended.
  bool attends() const { return standing_ == Standing::kAttends; }
  const SessionToken& session() const { return session_; }

 private:
  enum class State {
    kIdle,
    kJoining,
    kAttending,
    kPausing,
    kReturning,
    kEvicted,
    kRefused,
    kLeaving,
    kOver
  };
  // What the daemon has made of us so far.
  enum class Standing {
    kUnheard,  // the daemon has never said anything
    kKnown,    // the daemon has, but does not know the session
    kAttends,  // the daemon has welcomed the session
  };

  void HandleWelcome(const Welcome& welcome, TimePoint now);
  void HandleEvicted(TimePoint now);
  void HandleBroken(const ConnectionError& error, TimePoint now);
  void OpenConnection(TimePoint now);
  // AskToLeave is answered, or never will be.
  void ForgetQuestion();
  void Cut() {
    if (HasConnection()) Do(Abandon{});
  }
  void Pause(TimePoint now);
  bool TriesNextPlace();
  void EndPause(TimePoint now);
  void EndOutage(TimePoint now);
  // The session is over, as the connection has failed; `consequence` ends the sentence.
  void GiveUp(const char* consequence = "");
  void Beat(TimePoint now);
  void MoveDeadline() {
    if (const auto deadline = keeper_.last_deadline()) Do(Deadline{deadline});
  }
  void TakeDeadlineBack(TimePoint now);
  void FenceIfDue(TimePoint now);
  void TellOrHold(const Directive& directive, TimePoint now);
  void TellHeld(TimePoint now);
  bool LeaseIsShort(TimePoint now) const;
  bool LeaseRuns(TimePoint now) const;
  bool IsDone() const {
    return state_ == State::kRefused || state_ == State::kLeaving || state_ == State::kOver;
  }
  bool HasConnection() const {
    return state_ != State::kIdle && state_ != State::kPausing && state_ != State::kOver;
  }
  std::optional<TimePoint> DoubtfulFrom() const;
  void Do(Action action) { actions_.push_back(std::move(action)); }

  const Options options_;
  std::minstd_rand random_;

  State state_ = State::kIdle;
  Standing standing_ = Standing::kUnheard;
  SessionToken session_;
  std::uint64_t connection_ = 0;  // its number: how many there were
  std::vector<Event> said_;       // since the last Join, which is the first
  Welcome welcome_;               // the last one
  LeaseKeeper keeper_;
  std::optional<TimePoint> fenced_for_;  // the deadline that was told
  std::vector<Directive> held_;          // an Assignment and what followed it (LeaseIsShort)
  std::deque<Action> actions_;

  TimePoint attempt_began_{};
  TimePoint asked_at_{};  // when the Join or Resume was sent that Welcome answers
  TimePoint next_beat_{};
  TimePoint pause_ends_{};
  int place_ = 0;                       // of the next connection
  int failed_places_ = 0;               // in a row
  Duration pause_;                      // the next one's longest
  std::optional<TimePoint> gives_up_;   // when it stops trying, or waiting
  ConnectionError error_;               // the last one
  std::optional<TimePoint> out_since_;  // of touch
  bool troubled_ = false;               // and the listener was told so
  bool tells_all_ = true;               // with the next keep-alive: what was told may be lost
};

}  // namespace muster::rendezvous
