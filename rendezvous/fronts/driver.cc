#include "rendezvous/fronts/driver.h"

#include <type_traits>
#include <utility>
#include <variant>

#include <boost/asio/post.hpp>

#include "rendezvous/core/names.h"
#include "rendezvous/wire/printable.h"

namespace muster::rendezvous {
namespace {

// To write a directive takes 20 us or two.
constexpr int kToldInATurn = 100;

}  // namespace

Driver::Driver(boost::asio::io_context& io, Watcher watcher, const Coordinator::Options& options,
               const LogReaders::Options& logs)
    : io_(io), watcher_(std::move(watcher)), core_(options, logs), timer_(io), logs_(core_, [this] {
        Follow();
      }) {}

void Driver::UseJournal(Journal& journal, std::function<void(const absl::Status&)> on_fatal) {
  journal_ = std::make_unique<JournalWriter>(
      io_, core_, journal, [this] { Follow(); }, std::move(on_fatal));
  // What was restored may have forgotten jobs.
  Follow();
}

bool Driver::Restore(JobRecord job) {
  // For how long things have been is shown by the wall clock, which alone was there all the time.
  using std::chrono::milliseconds;
  const auto now =
      std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  const milliseconds then(job.history.true_at_ms);
  if (then > milliseconds::zero() && then < now) job.history.Pass(now - then);
  return core_.Restore(job, Now());
}

void Driver::RestoreEntry(std::string_view run_id, std::string_view key, std::string_view value) {
  core_.RestoreEntry(run_id, key, value);
}

void Driver::BeginToServe() {
  Handle([&] { core_.BeginToServe(Now()); });
}

AgentId Driver::Attach(Sink sink) {
  const AgentId agent = next_agent_++;
  sinks_.emplace(agent, std::move(sink));
  return agent;
}

void Driver::Detach(AgentId agent) {
  sinks_.erase(agent);
}

void Driver::Hear(AgentId agent, const Event& event) {
  Handle([&] { core_.Hear(agent, event, Now()); });
}

void Driver::Disconnected(AgentId agent, const std::string& why) {
  Handle([&] { core_.Disconnected(agent, why, Now()); });
}

void Driver::AgentDied(const SessionToken& session) {
  Handle([&] { core_.AgentDied(session, Now()); });
}

void Driver::Drain(const std::string& why) {
  Handle([&] { core_.Drain(why); });
}

void Driver::Close(const std::string& why) {
  Handle([&] { core_.Close(why, Now()); });
}

CallId Driver::Call(const StoreCall& call, Answered answered) {
  const CallId id = next_call_++;
  calls_.emplace(id, std::move(answered));
  Handle([&] { core_.Call(id, call); });
  return id;
}

void Driver::Cancel(CallId call) {
  calls_.erase(call);
  core_.Cancel(call);
}

void Driver::WhenIdle(std::function<void()> done) {
  when_idle_.push_back(std::move(done));
  Follow();
}

absl::Status Driver::Standing() const {
  if (!leads_ || leads_()) return absl::OkStatus();
  return absl::UnavailableError("this daemon leads no longer; another one does, or will");
}

absl::StatusOr<JobSnapshot> Driver::Describe(std::string_view run_id) const {
  if (absl::Status standing = Standing(); !standing.ok()) return standing;
  std::optional<JobSnapshot> job = core_.coordinator().Describe(run_id, Now());
  if (job) return *std::move(job);
  return absl::NotFoundError("no job '" + OneLine(run_id, kMaxNameLength) + "' here");
}

absl::StatusOr<std::vector<JobSnapshot>> Driver::List() const {
  if (absl::Status standing = Standing(); !standing.ok()) return standing;
  return core_.coordinator().List(Now());
}

TimePoint Driver::Now() {
  return std::chrono::steady_clock::now();
}

template <typename Happen>
void Driver::Handle(const Happen& happen) {
  if (frozen_) return;
  happen();
  Follow();
}

void Driver::Freeze() {
  frozen_ = true;
  timer_.cancel();
  if (journal_ != nullptr) journal_->Stop();
}

void Driver::Follow() {
  if (leads_ && !leads_()) Freeze();
  if (frozen_) return;
  for (const Transition& transition : core_.TakeLog()) {
    if (watcher_) watcher_(transition);
  }
  Deliver();
  CarryLogs();
  if (journal_ != nullptr) journal_->Follow();
  ArmTimer();
  if (!core_.idle()) return;
  for (std::function<void()>& done : std::exchange(when_idle_, {})) {
    boost::asio::post(io_, std::move(done));
  }
}

void Driver::Deliver() {
  // Whoever was told and called us is on the stack below: its loop goes on with what was added.
  if (delivering_) return;
  delivering_ = true;
  for (int told = 0; const std::optional<Telling> telling = core_.NextTelling(); ++told) {
    std::visit([this](const auto& kind) { Tell(kind); }, *telling);
    if (told == kToldInATurn) {
      DeliverRest();
      break;
    }
  }
  delivering_ = false;
}

void Driver::DeliverRest() {
  if (std::exchange(awaits_rest_, true)) return;
  boost::asio::post(io_, lifetime_.Guard([this] {
    awaits_rest_ = false;
    Follow();
  }));
}

void Driver::Tell(const Outgoing& outgoing) {
  const auto sink = sinks_.find(outgoing.to);
  if (sink == sinks_.end()) return;
  // A copy, as the sink may detach itself.
  const Sink call = sink->second;
  call(outgoing.directive());
}

void Driver::Tell(const StoreAnswer& answer) {
  const auto call = calls_.extract(answer.call);
  if (!call.empty()) call.mapped()(answer.call, answer.status);
}

void Driver::CarryLogs() {
  // As in Deliver.
  if (carrying_) return;
  carrying_ = true;
  while (std::optional<LogAction> action = core_.NextLogAction()) {
    if (const auto* wanted = std::get_if<Outgoing>(&*action)) {
      Tell(*wanted);
    } else {
      std::visit(
          [this](auto& kind) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(kind)>, Outgoing>) {
              logs_.Do(std::move(kind));
            }
          },
          *action);
    }
  }
  carrying_ = false;
}

void Driver::ArmTimer() {
  const std::optional<TimePoint> due = core_.NextDeadline();
  if (due == timer_due_) return;
  timer_due_ = due;
  timer_.cancel();
  if (!due) return;
  timer_.expires_at(*due);
  // The time may come while this is destroyed: then the handler is queued, and comes after.
  timer_.async_wait(lifetime_.Guard([this](const boost::system::error_code& error) {
    if (error) return;
    timer_due_.reset();
    Handle([&] { core_.Tick(Now()); });
  }));
}

}  // namespace muster::rendezvous
