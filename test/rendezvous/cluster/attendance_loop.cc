#include "test/rendezvous/cluster/attendance_loop.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/match.h"

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;

// As in grpc_client.cc and knocker.cc.
constexpr Duration kConnectAttempt = seconds(2);
constexpr Duration kLongestKnock = seconds(2);
// When gRPC finds a connection dead by its pings. Here the daemon's silence is taken for that, and
// only as long as no lease looks after the connection.
constexpr Duration kPingsFail = seconds(15);

}  // namespace

AttendanceLoop::AttendanceLoop(World world, int host, std::shared_ptr<Process> process,
                               Duration clock_offset, Listener listener)
    : world_(world),
      host_(host),
      process_(std::move(process)),
      clock_offset_(clock_offset),
      listener_(std::move(listener)),
      attendance_(
          {.where = "daemon",
           // Longer than any outage here.
           .connect_timeout = std::chrono::hours(24),
           .reconnect_timeout = std::chrono::hours(24),
           .places = world.network.places(),
           .new_session =
               [this] { return absl::StrCat("s", world_.random.Below(std::int64_t{1} << 62)); },
           .seed = static_cast<std::uint32_t>(1 + world.random.Below(std::int64_t{1} << 30))}) {}

void AttendanceLoop::Join(const JoinRequest& request) {
  attendance_.Join(request, Now());
  Act();
}

void AttendanceLoop::Say(Event event) {
  attendance_.Say(std::move(event));
  Act();
}

void AttendanceLoop::Leave(const std::string& reason) {
  attendance_.Leave(reason, Now());
  Act();
}

void AttendanceLoop::Act() {
  // What the listener asks for while it is told something comes after that.
  if (std::exchange(acting_, true)) return;
  while (std::optional<Attendance::Action> action = attendance_.NextAction()) {
    if (const auto* connect = std::get_if<Attendance::Connect>(&*action)) {
      Connect(*connect);
    } else if (auto* send = std::get_if<Attendance::Send>(&*action)) {
      Send(std::move(send->event));
    } else if (std::holds_alternative<Attendance::Abandon>(*action)) {
      Drop();
    } else if (const auto* knock = std::get_if<Attendance::Knock>(&*action)) {
      Knock(knock->session);
    } else if (std::holds_alternative<Attendance::Left>(*action)) {
      // From the loop, not from within.
      process_->After(Duration::zero(), [this] { listener_(Attendance::Left{}); });
    } else if (!std::holds_alternative<Attendance::FinishSending>(*action)) {
      Count(*action);
      CheckDeadline(*action);
      listener_(*action);
    }
  }
  acting_ = false;
  ArmTimer();
}

// A timer that is late finds that all is due; one that was moved finds another time.
void AttendanceLoop::ArmTimer() {
  const std::optional<TimePoint> due = attendance_.NextDeadline();
  if (due == armed_for_) return;
  armed_for_ = due;
  if (!due) return;
  process_->After(std::max(*due - Now(), Duration::zero()), [this, due] {
    if (armed_for_ != due) return;
    armed_for_.reset();
    attendance_.Tick(Now());
    Act();
  });
}

void AttendanceLoop::Connect(const Attendance::Connect& connect) {
  number_ = connect.connection;
  place_ = connect.place;
  connected_ = false;
  unsent_.clear();
  connection_ = world_.network.Connect(host_, this, place_);
  LimitAttempt();
}

void AttendanceLoop::Send(Event event) {
  if (connected_) return world_.network.Say(connection_, std::move(event));
  unsent_.push_back(std::move(event));
}

void AttendanceLoop::Knock(const SessionToken& session) {
  world_.network.Knock(host_, [this, process = process_, session, sent = Now(),
                               until = world_.scheduler.now() + kLongestKnock](KnockWord word) {
    // A process that is dead does nothing, so this loop is there when something is done.
    process->Do([this, session, sent, until, word] {
      if (world_.scheduler.now() > until) return;
      const bool paused = word == KnockWord::kPaused;
      world_.incidents.Count(paused ? Incident::kToldOfPause : Incident::kToldOfEnd);
      if (paused) {
        attendance_.OnPaused(session, sent);
      } else {
        attendance_.OnGone(session, Now());
      }
      Act();
    });
  });
}

void AttendanceLoop::Count(const Attendance::Action& action) {
  if (std::holds_alternative<Attendance::Fenced>(action)) {
    world_.incidents.Count(Incident::kFenced);
  } else if (const auto* out = std::get_if<Attendance::OutOfTouch>(&action)) {
    const bool doubted = absl::EndsWith(out->cause, "it has stopped answering");
    if (doubted) world_.incidents.Count(Incident::kDoubted);
  } else if (const auto* tell = std::get_if<Attendance::Tell>(&action)) {
    if (std::holds_alternative<Evicted>(tell->directive)) {
      world_.incidents.Count(Incident::kEvicted);
    }
    if (std::holds_alternative<Assignment>(tell->directive)) ++assignments_told_;
    if (!std::holds_alternative<Welcome>(tell->directive)) return;
    if (welcomed_ == session()) world_.incidents.Count(Incident::kResumed);
    welcomed_ = session();
    world_.checks.attendance.OnWelcomed(session());
  }
}

// Whoever is told to start workers has the time to.
void AttendanceLoop::CheckDeadline(const Attendance::Action& action) {
  if (const auto* moved = std::get_if<Attendance::Deadline>(&action)) deadline_ = moved->time;
  const auto* tell = std::get_if<Attendance::Tell>(&action);
  if (tell == nullptr || !std::holds_alternative<Assignment>(tell->directive)) return;
  if (!deadline_ || Now() < *deadline_) return;
  world_.checks.violations.Add(
      Check::kLongLived,
      absl::StrCat("host ", host_, " is told to start workers when its lease is over"));
}

void AttendanceLoop::LimitAttempt() {
  process_->After(kConnectAttempt, [this, connection = connection_] {
    if (connection != connection_ || connected_) return;
    world_.incidents.Count(Incident::kConnectTimeout);
    Drop();
    Ended({.cause = "the attempt took too long"});
  });
}

void AttendanceLoop::Ping() {
  process_->After(kPingsFail, [this, connection = connection_] {
    if (connection != connection_) return;
    if (attendance_.attends() || Now() < last_heard_ + kPingsFail) return Ping();
    Drop();
    Ended({.cause = "pings are not answered"});
  });
}

void AttendanceLoop::OnConnected(ConnectionId connection) {
  process_->Do([this, connection] {
    if (connection != connection_) return;
    connected_ = true;
    for (Event& event : std::exchange(unsent_, {})) Send(std::move(event));
    last_heard_ = Now();
    Ping();
  });
}

void AttendanceLoop::OnRefused(ConnectionId connection) {
  process_->Do([this, connection] {
    if (connection != connection_) return;
    world_.incidents.Count(Incident::kConnectionRefused);
    connection_ = 0;
    Ended({.cause = "Connection refused", .kind = ConnectionError::Kind::kRefused});
  });
}

void AttendanceLoop::OnClosed(ConnectionId connection) {
  process_->Do([this, connection] {
    if (connection != connection_) return;
    connection_ = 0;
    Ended({.cause = "the connection ended"});
  });
}

void AttendanceLoop::OnMessage(ConnectionId connection, Downward message) {
  process_->Do([this, connection, message = std::move(message)] {
    if (connection != connection_) return;
    last_heard_ = Now();
    const Directive& directive = std::get<Directive>(message);
    const int told = assignments_told_;
    attendance_.OnDirective(number_, directive, Now());
    Act();
    const bool starts = std::holds_alternative<Assignment>(directive);
    if (starts && told == assignments_told_) world_.incidents.Count(Incident::kAssignmentHeld);
  });
}

void AttendanceLoop::Ended(const ConnectionError& error) {
  attendance_.OnConnectionEnded(number_, error, Now());
  Act();
}

void AttendanceLoop::Drop() {
  if (connection_ != 0) world_.network.Abandon(connection_);
  connection_ = 0;
}

}  // namespace muster::rendezvous
