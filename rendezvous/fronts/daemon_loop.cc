#include "rendezvous/fronts/daemon_loop.h"

#include <time.h>

#include <cstddef>
#include <type_traits>
#include <utility>
#include <variant>

#include <spdlog/spdlog.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/values/phrases.h"
#include "rendezvous/wire/wire.h"

namespace muster::rendezvous {
namespace {

// A node takes some microseconds.
constexpr std::size_t kManyNodes = 250;

bool IsLarge(const Batch& batch) {
  std::size_t nodes = 0;
  for (const Batch::Job& job : batch.jobs) {
    if (job.record) nodes += job.record->attendees.size();
  }
  return nodes >= kManyNodes;
}

JournalBatch ToJournal(Batch batch) {
  JournalBatch bytes;
  const std::int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count();
  for (Batch::Job& job : batch.jobs) {
    if (job.record) job.record->history.true_at_ms = now_ms;
    bytes.jobs.push_back(
        {job.run_id, job.record ? std::optional(ToBytes(*job.record)) : std::nullopt});
  }
  for (Batch::Entry& entry : batch.entries) {
    bytes.entries.push_back(
        {std::move(entry.run_id), std::move(entry.key), std::move(entry.value)});
  }
  return bytes;
}

// Before a batch for which there was no room on the disk is tried again.
constexpr std::chrono::seconds kRest(1);

using std::chrono::microseconds;
using std::chrono::milliseconds;
// From a fast NVMe to a disk that no agent should wait for.
constexpr std::chrono::nanoseconds kCommits[] = {
    microseconds(250),  microseconds(500),   milliseconds(1),   milliseconds(2),
    milliseconds(5),    milliseconds(10),    milliseconds(25),  milliseconds(50),
    milliseconds(100),  milliseconds(250),   milliseconds(500), milliseconds(1000),
    milliseconds(2500), milliseconds(10'000)};

// Of the processor, which does not go on while others have it.
std::chrono::nanoseconds ThreadTime() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

// To write a directive takes 20 us or two.
constexpr int kToldInATurn = 100;

}  // namespace

void BatchEncoder::Encode(Batch batch, std::function<void(JournalBatch)> done) {
  if (!IsLarge(batch)) return done(ToJournal(std::move(batch)));
  if (!thread_) thread_.emplace(1);
  auto deliver =
      lifetime_.Guard([done = std::move(done)](JournalBatch bytes) { done(std::move(bytes)); });
  boost::asio::post(*thread_, [&io = io_, goes_on = boost::asio::make_work_guard(io_),
                               batch = std::move(batch), deliver = std::move(deliver)]() mutable {
    boost::asio::post(io, [bytes = ToJournal(std::move(batch)),
                           deliver = std::move(deliver)]() mutable { deliver(std::move(bytes)); });
  });
}

JournalWriter::JournalWriter(boost::asio::io_context& io, DaemonCore& core, Journal& journal,
                             std::function<void()> ended,
                             std::function<void(const absl::Status&)> fatal)
    : io_(io),
      core_(core),
      journal_(journal),
      ended_(std::move(ended)),
      fatal_(std::move(fatal)),
      encoder_(io),
      figures_{.commits = base::DurationHistogram(kCommits)},
      timer_(io) {}

void JournalWriter::Follow() {
  if (state_ != State::kIdle || !core_.NeedsCommit()) return;
  state_ = State::kPosted;
  if (pace_.next() > std::chrono::steady_clock::now()) return WriteAt(pace_.next());
  // After what else is due in this turn of the loop, so that one batch holds it all.
  boost::asio::post(io_, lifetime_.Guard([this] { Write(); }));
}

void JournalWriter::Stop() {
  state_ = State::kStopped;
  timer_.Cancel();
}

void JournalWriter::Write() {
  if (state_ == State::kStopped) return;
  state_ = State::kWriting;
  began_ = std::chrono::steady_clock::now();
  const std::chrono::nanoseconds before = ThreadTime();
  Batch batch = core_.BeginCommit(began_);
  pace_.Made(ThreadTime() - before, std::chrono::steady_clock::now());
  encoder_.Encode(std::move(batch), [this](JournalBatch bytes) {
    if (state_ == State::kStopped) return;
    journal_.Commit(std::move(bytes),
                    lifetime_.Guard([this](const absl::Status& status) { OnWritten(status); }));
  });
}

void JournalWriter::WriteAt(std::chrono::steady_clock::time_point when) {
  timer_.At(when, [this] { Write(); });
}

void JournalWriter::OnWritten(const absl::Status& status) {
  const bool was_full = core_.disk_full();
  if (absl::IsResourceExhausted(status)) {
    ++figures_.failed;
    core_.DiskFull();
    if (!was_full) {
      spdlog::error("{}; calls of stores are refused and new rounds wait until there is space",
                    std::string(status.message()));
    }
    if (state_ == State::kStopped) return;
    state_ = State::kResting;
    WriteAt(std::chrono::steady_clock::now() + kRest);
    return ended_();
  }
  if (!status.ok()) return fatal_(status);
  figures_.commits.Observe(std::chrono::steady_clock::now() - began_);
  core_.Committed();
  if (was_full) spdlog::warn("the journal can be written again");
  if (state_ == State::kStopped) return;
  state_ = State::kIdle;
  ended_();
  Follow();
}

DaemonLoop::DaemonLoop(boost::asio::io_context& io, Watcher watcher,
                       const Coordinator::Options& options, const LogReaders::Options& logs)
    : io_(io), watcher_(std::move(watcher)), core_(options, logs), timer_(io), logs_(core_, [this] {
        Follow();
      }) {}

void DaemonLoop::UseJournal(Journal& journal, std::function<void(const absl::Status&)> on_fatal) {
  journal_ = std::make_unique<JournalWriter>(
      io_, core_, journal, [this] { Follow(); }, std::move(on_fatal));
  // What was restored may have forgotten jobs.
  Follow();
}

bool DaemonLoop::Restore(JobRecord job) {
  // For how long things have been is shown by the wall clock, which alone was there all the time.
  using std::chrono::milliseconds;
  const auto now =
      std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  const milliseconds then(job.history.true_at_ms);
  if (then > milliseconds::zero() && then < now) job.history.Pass(now - then);
  return core_.Restore(job, Now());
}

void DaemonLoop::RestoreEntry(std::string_view run_id, std::string_view key,
                              std::string_view value) {
  core_.RestoreEntry(run_id, key, value);
}

void DaemonLoop::BeginToServe() {
  Handle([&] { core_.BeginToServe(Now()); });
}

AgentId DaemonLoop::Attach(Sink sink) {
  const AgentId agent = next_agent_++;
  sinks_.emplace(agent, std::move(sink));
  return agent;
}

void DaemonLoop::Detach(AgentId agent) {
  sinks_.erase(agent);
}

void DaemonLoop::Hear(AgentId agent, const Event& event) {
  Handle([&] { core_.Hear(agent, event, Now()); });
}

void DaemonLoop::Disconnected(AgentId agent, const std::string& why) {
  Handle([&] { core_.Disconnected(agent, why, Now()); });
}

void DaemonLoop::AgentDied(const SessionToken& session) {
  Handle([&] { core_.AgentDied(session, Now()); });
}

void DaemonLoop::Drain(const std::string& why) {
  Handle([&] { core_.Drain(why); });
}

void DaemonLoop::Close(const std::string& why) {
  Handle([&] { core_.Close(why, Now()); });
}

CallId DaemonLoop::Call(const StoreCall& call, Answered answered) {
  const CallId id = next_call_++;
  calls_.emplace(id, std::move(answered));
  Handle([&] { core_.Call(id, call); });
  return id;
}

void DaemonLoop::Cancel(CallId call) {
  calls_.erase(call);
  core_.Cancel(call);
}

void DaemonLoop::WhenIdle(std::function<void()> done) {
  when_idle_.push_back(std::move(done));
  Follow();
}

absl::Status DaemonLoop::Standing() const {
  if (!leads_ || leads_()) return absl::OkStatus();
  return absl::UnavailableError("this daemon is no longer the leader; retry another endpoint");
}

absl::StatusOr<JobSnapshot> DaemonLoop::Describe(std::string_view run_id) const {
  if (absl::Status standing = Standing(); !standing.ok()) return standing;
  std::optional<JobSnapshot> job = core_.coordinator().Describe(run_id, Now());
  if (job) return WithDisk(*std::move(job));
  return absl::NotFoundError("no job '" + OneLine(run_id, kMaxNameLength) + "' here");
}

absl::StatusOr<std::vector<JobSnapshot>> DaemonLoop::List() const {
  if (absl::Status standing = Standing(); !standing.ok()) return standing;
  std::vector<JobSnapshot> jobs = core_.coordinator().List(Now());
  for (JobSnapshot& job : jobs) job = WithDisk(std::move(job));
  return jobs;
}

// What has been decided is told to nobody before it is written, so that a job may wait for nodes
// that have not heard of it.
JobSnapshot DaemonLoop::WithDisk(JobSnapshot job) const {
  if (core_.disk_full()) {
    job.sentence = absl::StrCat("the daemon's disk, or its etcd, is full, and ",
                                "nodes get no news until there is space; ", job.sentence);
  }
  return job;
}

TimePoint DaemonLoop::Now() {
  return std::chrono::steady_clock::now();
}

template <typename Happen>
void DaemonLoop::Handle(const Happen& happen) {
  if (frozen_) return;
  happen();
  Follow();
}

void DaemonLoop::Freeze() {
  frozen_ = true;
  timer_.Cancel();
  if (journal_ != nullptr) journal_->Stop();
}

void DaemonLoop::Follow() {
  if (leads_ && !leads_()) Freeze();
  if (frozen_) return;
  for (const Transition& transition : core_.TakeLog()) {
    if (watcher_) watcher_(transition);
  }
  Deliver();
  CarryLogs();
  if (journal_ != nullptr) journal_->Follow();
  timer_.Follow(core_.NextDeadline(), [this] { Handle([&] { core_.Tick(Now()); }); });
  if (!core_.idle()) return;
  for (std::function<void()>& done : std::exchange(when_idle_, {})) {
    boost::asio::post(io_, std::move(done));
  }
}

void DaemonLoop::Deliver() {
  // Whoever was told and called us is on the stack below: its loop goes on with what was added.
  if (delivering_) return;
  delivering_ = true;
  for (int told = 0; const std::optional<OutboundMessage> message = core_.NextMessage(); ++told) {
    std::visit([this](const auto& kind) { Tell(kind); }, *message);
    if (told == kToldInATurn) {
      DeliverRest();
      break;
    }
  }
  delivering_ = false;
}

void DaemonLoop::DeliverRest() {
  if (std::exchange(awaits_rest_, true)) return;
  boost::asio::post(io_, lifetime_.Guard([this] {
    awaits_rest_ = false;
    Follow();
  }));
}

void DaemonLoop::Tell(const Outgoing& outgoing) {
  const auto sink = sinks_.find(outgoing.to);
  if (sink == sinks_.end()) return;
  // A copy, as the sink may detach itself.
  const Sink call = sink->second;
  call(outgoing.directive());
}

void DaemonLoop::Tell(const StoreAnswer& answer) {
  const auto call = calls_.extract(answer.call);
  if (!call.empty()) call.mapped()(answer.call, answer.status);
}

void DaemonLoop::CarryLogs() {
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

}  // namespace muster::rendezvous
