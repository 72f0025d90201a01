#include "test/rendezvous/cluster/agent_session_loop.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/match.h"

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;

// As in rendezvous/client/grpc_client.cc.
constexpr Duration kConnectAttempt = seconds(2);
constexpr Duration kLongestKnock = seconds(2);
// When gRPC finds a connection dead by its pings. Here the daemon's silence is taken for that, and
// only as long as no lease looks after the connection.
constexpr Duration kPingsFail = seconds(15);

}  // namespace

AgentSessionLoop::AgentSessionLoop(World world, int host, std::shared_ptr<Process> process,
                                   Duration clock_offset, Listener listener)
    : world_(world),
      host_(host),
      process_(std::move(process)),
      clock_offset_(clock_offset),
      listener_(std::move(listener)),
      agent_session_(
          {.where = "daemon",
           // Longer than any outage here.
           .connect_timeout = std::chrono::hours(24),
           .reconnect_timeout = std::chrono::hours(24),
           .places = world.network.places(),
           .new_session =
               [this] { return absl::StrCat("s", world_.random.Below(std::int64_t{1} << 62)); },
           .seed = static_cast<std::uint32_t>(1 + world.random.Below(std::int64_t{1} << 30))}) {}

void AgentSessionLoop::Join(const JoinRequest& request) {
  agent_session_.Join(request, Now());
  Act();
}

void AgentSessionLoop::Say(Event event) {
  agent_session_.Say(std::move(event));
  Act();
}

void AgentSessionLoop::Leave(const std::string& reason) {
  agent_session_.Leave(reason, Now());
  Act();
}

void AgentSessionLoop::Act() {
  // What the listener asks for while it is told something comes after that.
  if (std::exchange(acting_, true)) return;
  while (std::optional<AgentSession::Action> action = agent_session_.NextAction()) {
    if (const auto* connect = std::get_if<AgentSession::Connect>(&*action)) {
      Connect(*connect);
    } else if (auto* send = std::get_if<AgentSession::Send>(&*action)) {
      Send(std::move(send->event));
    } else if (std::holds_alternative<AgentSession::Abandon>(*action)) {
      Drop();
    } else if (const auto* probe = std::get_if<AgentSession::LivenessProbe>(&*action)) {
      Probe(probe->session);
    } else if (std::holds_alternative<AgentSession::Left>(*action)) {
      // From the loop, not from within.
      process_->After(Duration::zero(), [this] { listener_(AgentSession::Left{}); });
    } else if (!std::holds_alternative<AgentSession::FinishSending>(*action)) {
      Count(*action);
      CheckDeadline(*action);
      listener_(*action);
    }
  }
  acting_ = false;
  ArmTimer();
}

// A timer that is late finds that all is due; one that was moved finds another time.
void AgentSessionLoop::ArmTimer() {
  const std::optional<TimePoint> due = agent_session_.NextDeadline();
  if (due == armed_for_) return;
  armed_for_ = due;
  if (!due) return;
  process_->After(std::max(*due - Now(), Duration::zero()), [this, due] {
    if (armed_for_ != due) return;
    armed_for_.reset();
    agent_session_.Tick(Now());
    Act();
  });
}

void AgentSessionLoop::Connect(const AgentSession::Connect& connect) {
  number_ = connect.connection;
  place_ = connect.place;
  connected_ = false;
  unsent_.clear();
  connection_ = world_.network.Connect(host_, this, place_);
  LimitAttempt();
}

void AgentSessionLoop::Send(Event event) {
  if (connected_) return world_.network.Say(connection_, std::move(event));
  unsent_.push_back(std::move(event));
}

void AgentSessionLoop::Probe(const SessionToken& session) {
  world_.network.Probe(host_, [this, process = process_, session, sent = Now(),
                               until = world_.scheduler.now() + kLongestKnock](ProbeWord word) {
    // A process that is dead does nothing, so this loop is there when something is done.
    process->Do([this, session, sent, until, word] {
      if (world_.scheduler.now() > until) return;
      const bool paused = word == ProbeWord::kPaused;
      world_.incidents.Count(paused ? Incident::kToldOfPause : Incident::kToldOfEnd);
      if (paused) {
        agent_session_.OnPaused(session, sent);
      } else {
        agent_session_.OnGone(session, Now());
      }
      Act();
    });
  });
}

void AgentSessionLoop::Count(const AgentSession::Action& action) {
  if (std::holds_alternative<AgentSession::Fenced>(action)) {
    world_.incidents.Count(Incident::kFenced);
  } else if (const auto* out = std::get_if<AgentSession::OutOfTouch>(&action)) {
    const bool doubted = absl::EndsWith(out->cause, "it has stopped answering");
    if (doubted) world_.incidents.Count(Incident::kDoubted);
  } else if (const auto* tell = std::get_if<AgentSession::Tell>(&action)) {
    if (std::holds_alternative<Evicted>(tell->directive)) {
      world_.incidents.Count(Incident::kEvicted);
    }
    if (std::holds_alternative<Assignment>(tell->directive)) ++assignments_told_;
    if (!std::holds_alternative<Welcome>(tell->directive)) return;
    if (welcomed_ == session()) world_.incidents.Count(Incident::kResumed);
    welcomed_ = session();
    world_.checks.agent_session.OnWelcomed(session());
  }
}

// Whoever is told to start workers has the time to.
void AgentSessionLoop::CheckDeadline(const AgentSession::Action& action) {
  if (const auto* moved = std::get_if<AgentSession::Deadline>(&action)) deadline_ = moved->time;
  const auto* tell = std::get_if<AgentSession::Tell>(&action);
  if (tell == nullptr || !std::holds_alternative<Assignment>(tell->directive)) return;
  if (!deadline_ || Now() < *deadline_) return;
  world_.checks.violations.Add(
      Check::kLongLived,
      absl::StrCat("host ", host_, " is told to start workers when its lease is over"));
}

void AgentSessionLoop::LimitAttempt() {
  process_->After(kConnectAttempt, [this, connection = connection_] {
    if (connection != connection_ || connected_) return;
    world_.incidents.Count(Incident::kConnectTimeout);
    Drop();
    Ended({.cause = "the attempt took too long"});
  });
}

void AgentSessionLoop::Ping() {
  process_->After(kPingsFail, [this, connection = connection_] {
    if (connection != connection_) return;
    if (agent_session_.attends() || Now() < last_heard_ + kPingsFail) return Ping();
    Drop();
    Ended({.cause = "pings are not answered"});
  });
}

void AgentSessionLoop::OnConnected(ConnectionId connection) {
  process_->Do([this, connection] {
    if (connection != connection_) return;
    connected_ = true;
    for (Event& event : std::exchange(unsent_, {})) Send(std::move(event));
    last_heard_ = Now();
    Ping();
  });
}

void AgentSessionLoop::OnRefused(ConnectionId connection) {
  process_->Do([this, connection] {
    if (connection != connection_) return;
    world_.incidents.Count(Incident::kConnectionRefused);
    connection_ = 0;
    Ended({.cause = "Connection refused", .kind = ConnectionError::Kind::kRefused});
  });
}

void AgentSessionLoop::OnClosed(ConnectionId connection) {
  process_->Do([this, connection] {
    if (connection != connection_) return;
    connection_ = 0;
    Ended({.cause = "the connection ended"});
  });
}

void AgentSessionLoop::OnMessage(ConnectionId connection, Downward message) {
  process_->Do([this, connection, message = std::move(message)] {
    if (connection != connection_) return;
    last_heard_ = Now();
    const Directive& directive = std::get<Directive>(message);
    const int told = assignments_told_;
    agent_session_.OnDirective(number_, directive, Now());
    Act();
    const bool starts = std::holds_alternative<Assignment>(directive);
    if (starts && told == assignments_told_) world_.incidents.Count(Incident::kAssignmentHeld);
  });
}

void AgentSessionLoop::Ended(const ConnectionError& error) {
  agent_session_.OnConnectionEnded(number_, error, Now());
  Act();
}

void AgentSessionLoop::Drop() {
  if (connection_ != 0) world_.network.Abandon(connection_);
  connection_ = 0;
}

}  // namespace muster::rendezvous
