#include "test/rendezvous/cluster/sim_client.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// As in grpc_client.cc.
constexpr Duration kFirstPause = milliseconds(50);
constexpr Duration kLongestPause = seconds(1);
constexpr Duration kConnectAttempt = seconds(2);
constexpr Duration kLongestAttempt = seconds(5);
constexpr Duration kLongestGoodbye = seconds(5);
// When gRPC finds a connection dead by its pings. Here the daemon's silence is taken for that, and
// only as long as no lease looks after the connection.
constexpr Duration kPingsFail = seconds(15);

}  // namespace

SimClient::SimClient(World world, int host, std::shared_ptr<Process> process, Duration clock_offset,
                     const AgentMutations& mutations, Listener& listener)
    : world_(world),
      host_(host),
      process_(std::move(process)),
      clock_offset_(clock_offset),
      mutations_(mutations),
      listener_(listener),
      pause_(kFirstPause) {
  NewSession();
}

void SimClient::NewSession() {
  session_ = absl::StrCat("s", world_.random.Below(std::int64_t{1} << 62));
}

void SimClient::After(Duration delay, std::function<void()> task) {
  process_->After(delay, [this, task = std::move(task)] {
    if (!over_) task();
  });
}

void SimClient::Join(JoinRequest request) {
  request.session = session_;
  request.connection = number_;
  // Rounds that another attendance ran are none of this one's.
  if (!attended_ && !mutations_.names_rounds_of_other_lives) request.after = kNoRound;
  said_.clear();
  asked_at_ = Now();
  Say(std::move(request));
  if (connection_ == 0 && !pausing_) Connect();
}

void SimClient::Say(Event message) {
  if (connection_ != 0 && open_) Send(message);
  said_.push_back(std::move(message));
}

void SimClient::Send(Event message) {
  if (connected_) return world_.network.Say(connection_, std::move(message));
  unsent_.push_back(std::move(message));
}

void SimClient::Leave(const std::string& reason, std::function<void()> left) {
  left_ = std::move(left);
  ++beats_;
  ++watches_;
  // Nobody to tell: the lease ends by itself.
  if (connection_ == 0 || !open_ || !attended_) return Left();
  Send(Goodbye{reason});
  After(kLongestGoodbye, [this] { Left(); });
}

void SimClient::Left() {
  LetGo();
  process_->After(Duration::zero(), std::exchange(left_, nullptr));
}

void SimClient::Connect() {
  pausing_ = false;
  attempt_began_ = asked_at_ = Now();
  connection_ = world_.network.Connect(host_, this);
  connected_ = false;
  unsent_.clear();
  // What was said is said again once the daemon has taken us back: it may not know us any more.
  open_ = !attended_;
  ++number_;
  for (Event& said : said_) {
    if (auto* join = std::get_if<JoinRequest>(&said)) join->connection = number_;
  }
  if (attended_) {
    Send(Resume{session_, number_});
  } else {
    for (const Event& said : said_) Send(said);
  }
  After(kConnectAttempt, [this, connection = connection_] {
    if (connection != connection_ || connected_) return;
    world_.incidents.Count(Incident::kConnectTimeout);
    Drop();
    HandleBroken(false);
  });
  ArmWatch();
}

void SimClient::OnConnected(ConnectionId connection) {
  process_->Do([this, connection] {
    if (connection != connection_) return;
    connected_ = true;
    for (Event& message : std::exchange(unsent_, {})) Send(std::move(message));
    last_heard_ = Now();
    Ping();
  });
}

void SimClient::Ping() {
  After(kPingsFail, [this, connection = connection_] {
    if (connection != connection_) return;
    if (attended_ || Now() < last_heard_ + kPingsFail) return Ping();
    Drop();
    HandleBroken(false);
  });
}

void SimClient::OnRefused(ConnectionId connection) {
  process_->Do([this, connection] {
    if (connection != connection_) return;
    world_.incidents.Count(Incident::kConnectionRefused);
    connection_ = 0;
    HandleBroken(true);
  });
}

void SimClient::OnClosed(ConnectionId connection) {
  process_->Do([this, connection] {
    if (connection != connection_) return;
    connection_ = 0;
    HandleBroken(false);
  });
}

void SimClient::OnMessage(ConnectionId connection, Downward message) {
  process_->Do([this, connection, message = std::move(message)] {
    if (connection != connection_) return;
    last_heard_ = Now();
    HandleDirective(std::get<Directive>(message));
  });
}

void SimClient::HandleDirective(const Directive& directive) {
  answered_ = true;
  if (const auto* heard = std::get_if<Heard>(&directive)) {
    if (mutations_.counts_lease_from_answer) keeper_.OnWelcome(lease_, durable_, Now());
    keeper_.OnHeard(heard->number);
    return MoveDeadline();
  }
  if (const auto* welcome = std::get_if<Welcome>(&directive)) HandleWelcome(*welcome);
  if (std::holds_alternative<Evicted>(directive)) HandleEvicted();
  if (std::holds_alternative<Refused>(directive) && !left_) LetGo();
  // After Leave only the connection's end is waited for.
  if (!left_) listener_.OnDirective(directive);
}

void SimClient::HandleWelcome(const Welcome& welcome) {
  if (attended_) world_.incidents.Count(Incident::kResumed);
  world_.checks.attendance.OnWelcomed(session_);
  durable_ = welcome.durable;
  lease_ = welcome.lease;
  keep_alive_ = welcome.keep_alive;
  pause_ = kFirstPause;
  keeper_.OnNewConnection();
  keeper_.OnWelcome(welcome.lease, welcome.durable, asked_at_);
  attended_ = true;
  if (!std::exchange(open_, true)) {
    for (const Event& said : said_) Send(said);
  }
  ScheduleBeat();
  MoveDeadline();
}

// Whatever was said to this attendance goes with it; the next Join begins another. The deadline
// stays: workers that run must be dead by then.
void SimClient::HandleEvicted() {
  world_.incidents.Count(Incident::kEvicted);
  attended_ = false;
  open_ = true;
  NewSession();
  said_.clear();
  keeper_ = {};
  ++beats_;
  ArmWatch();
}

void SimClient::HandleBroken(bool refused) {
  connected_ = false;
  open_ = false;
  ++beats_;
  if (left_) return Left();
  keeper_.OnNewConnection();
  if (!answered_) return TryAgain();
  if (refused && !durable_) {
    LetGo();
    return listener_.OnLost("the rendezvous is gone");
  }
  if (refused) keeper_.OnNobodyDecides(attempt_began_);
  TryAgain();
  MoveDeadline();
}

void SimClient::TryAgain() {
  pausing_ = true;
  // Half of the pause is left to chance, so that not all come back as one.
  const Duration pause = world_.random.Between(pause_ / 2, pause_);
  // Soon enough to be back within a short lease.
  const Duration longest = lease_ > Duration::zero()
                               ? std::clamp(lease_ / 3, kFirstPause, kLongestPause)
                               : kLongestPause;
  pause_ = std::min(2 * pause_, longest);
  After(pause, [this] {
    if (left_) return;
    pausing_ = false;
    // After an eviction there is nothing to say until the next Join.
    if (attended_ || !said_.empty()) Connect();
  });
}

void SimClient::ScheduleBeat() {
  After(keep_alive_, [this, number = ++beats_] {
    if (number != beats_ || connection_ == 0 || !open_) return;
    Send(KeepAlive{keeper_.Beat(Now())});
    ArmWatch();
    ScheduleBeat();
  });
}

void SimClient::MoveDeadline() {
  const auto deadline = keeper_.last_deadline();
  if (deadline && !mutations_.does_not_fence) listener_.OnDeadline(deadline);
  ArmWatch();
}

// Looks again when the lease is about to end, or when the connection is to be doubted.
void SimClient::ArmWatch() {
  std::optional<TimePoint> due = keeper_.deadline();
  if (due && fenced_for_ == due) due.reset();
  if (const auto doubtful = DoubtfulFrom()) due = std::min(due.value_or(*doubtful), *doubtful);
  ++watches_;
  if (!due || left_) return;
  After(std::max(*due - Now(), Duration::zero()), [this, number = watches_] {
    if (number == watches_) Watch();
  });
}

std::optional<TimePoint> SimClient::DoubtfulFrom() const {
  if (connection_ == 0) return std::nullopt;
  if (answered_ && !open_) return attempt_began_ + kLongestAttempt;
  return keeper_.doubtful_from();
}

void SimClient::Watch() {
  const std::optional<TimePoint> deadline = keeper_.deadline();
  if (deadline && Now() >= *deadline && fenced_for_ != deadline) {
    fenced_for_ = deadline;
    if (!mutations_.does_not_fence) {
      world_.incidents.Count(Incident::kFenced);
      listener_.OnFenced("nothing was heard of the rendezvous");
    }
  }
  const std::optional<TimePoint> doubtful = DoubtfulFrom();
  if (doubtful && Now() >= *doubtful) {
    world_.incidents.Count(Incident::kDoubted);
    Drop();
    return HandleBroken(false);
  }
  ArmWatch();
}

void SimClient::Drop() {
  if (connection_ != 0) world_.network.Abandon(connection_);
  connection_ = 0;
  connected_ = false;
}

void SimClient::LetGo() {
  Drop();
  over_ = true;
}

}  // namespace muster::rendezvous
