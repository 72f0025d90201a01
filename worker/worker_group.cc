#include "worker/worker_group.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include <boost/asio/post.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/console.h"
#include "worker/output.h"
#include "worker/process.h"
#include "worker/spawn.h"

namespace muster::worker {

struct WorkerGroup::Worker {
  WorkerSpec spec;
  std::unique_ptr<Output> out;
  std::unique_ptr<Output> err;
  std::unique_ptr<Process> process;
  std::optional<ExitStatus> status;
  bool stopped_by_group = false;
};

namespace {

FailureRecord RecordOf(const WorkerSpec& spec) {
  FailureRecord record;
  record.rank = spec.rank;
  record.local_rank = spec.local_rank;
  record.log_path = spec.stderr_spec.file.empty() ? spec.stdout_spec.file : spec.stderr_spec.file;
  if (!spec.error_file.empty() && ::access(spec.error_file.c_str(), R_OK) == 0) {
    record.error_file = spec.error_file;
  }
  return record;
}

FailureRecord CouldNotBeStarted(const WorkerSpec& spec, const absl::Status& status) {
  FailureRecord record = RecordOf(spec);
  record.status.exit_code = absl::IsNotFound(status) ? kExitNotFound : kExitNotExecutable;
  record.what = absl::StrCat("could not be started: ", status.message());
  return record;
}

}  // namespace

WorkerGroup::WorkerGroup(boost::asio::io_context& io, WorkerGroupOptions options, Console& console,
                         WorkerGroupCallbacks callbacks)
    : io_(io),
      options_(options),
      console_(console),
      callbacks_(std::move(callbacks)),
      timer_(io),
      alive_(std::make_shared<char>()) {}

WorkerGroup::~WorkerGroup() {
  // All get the signal before any is waited for.
  for (const auto& worker : workers_) worker->process->SignalGroup(SIGKILL);
}

void WorkerGroup::Start(std::vector<WorkerSpec> specs) {
  if (state_ != State::kNew || specs.empty()) std::abort();
  state_ = State::kRunning;
  for (WorkerSpec& spec : specs) {
    const absl::Status status = StartWorker(spec);
    if (status.ok()) continue;
    StartGuard();
    // Told from the loop, so that nobody hears of a failure before Start() has returned.
    start_failed_ = true;
    boost::asio::post(io_, [this, alive = std::weak_ptr<void>(alive_),
                            failure = CouldNotBeStarted(spec, status)] {
      if (alive.expired()) return;
      start_failed_ = false;
      OnFailure(failure);
      FinishIfAllGone();
    });
    return;
  }
  StartGuard();
}

// After the workers, which need not wait for it.
void WorkerGroup::StartGuard() {
  if (workers_.empty()) return;
  absl::StatusOr<OrphanGuard> guard = OrphanGuard::Start(workers_.size());
  if (guard.ok()) {
    guard_.emplace(*std::move(guard));
    for (const auto& worker : workers_) guard_->Watch(worker->process->pid());
    return;
  }
  boost::asio::post(io_, [this, alive = std::weak_ptr<void>(alive_),
                          why = std::string(guard.status().message())] {
    if (alive.expired() || !callbacks_.on_warning) return;
    callbacks_.on_warning("processes that workers start would outlive a killed agent: " + why);
  });
}

absl::Status WorkerGroup::StartWorker(const WorkerSpec& spec) {
  auto worker = std::make_unique<Worker>();
  worker->spec = spec;
  const std::string owner = absl::StrCat("rank ", spec.rank);
  auto out = Output::Open(io_, spec.stdout_spec, StreamKind::kStdout, console_, owner,
                          callbacks_.on_warning);
  if (!out.ok()) return out.status();
  worker->out = *std::move(out);
  auto err = Output::Open(io_, spec.stderr_spec, StreamKind::kStderr, console_, owner,
                          callbacks_.on_warning);
  if (!err.ok()) return err.status();
  worker->err = *std::move(err);

  SpawnRequest request;
  request.argv = spec.argv;
  request.env = spec.env;
  UniqueFd null;
  if (spec.stdin_policy == StdinPolicy::kNull) {
    null.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    request.stdin_fd = null.get();
  }
  request.stdout_fd = worker->out->child_fd();
  request.stderr_fd = worker->err->child_fd();
  absl::StatusOr<Spawned> spawned = Spawn(request);
  if (!spawned.ok()) return spawned.status();

  worker->out->Start();
  worker->err->Start();
  worker->process = std::make_unique<Process>(
      io_, *std::move(spawned),
      [this, raw = worker.get()](const ExitStatus& status) { OnExit(*raw, status); });
  workers_.push_back(std::move(worker));
  return absl::OkStatus();
}

void WorkerGroup::OnExit(Worker& worker, const ExitStatus& status) {
  worker.status = status;
  if (guard_) guard_->Forget(worker.process->pid());
  worker.out->Finish();
  worker.err->Finish();
  if (!status.Succeeded() && state_ == State::kRunning) {
    FailureRecord failure = RecordOf(worker.spec);
    failure.pid = worker.process->pid();
    failure.status = status;
    failure.what = DescribeExit(status);
    failure.stderr_tail = worker.err->Tail();
    OnFailure(std::move(failure));
  }
  FinishIfAllGone();
}

void WorkerGroup::OnFailure(FailureRecord failure) {
  if (failure_.has_value()) return;
  failure_ = std::move(failure);
  if (callbacks_.on_first_failure) callbacks_.on_first_failure(*failure_);
  // The callback may have begun to stop the group its own way.
  if (state_ == State::kRunning) BeginStop(options_.ladder);
}

void WorkerGroup::Stop(const StopLadder& ladder) {
  if (state_ == State::kRunning) {
    stop_requested_ = true;
    BeginStop(ladder);
  } else if (state_ == State::kStopping) {
    HastenKill(ladder);
  }
}

void WorkerGroup::BeginStop(const StopLadder& ladder) {
  state_ = State::kStopping;
  give_up_ = ladder.give_up;
  for (const auto& worker : workers_) {
    worker->stopped_by_group = !worker->status.has_value();
    if (ladder.KillsAtOnce()) continue;
    worker->process->SignalGroup(ladder.first_signal);
    // A worker that is stopped (SIGSTOP) could not answer the first signal.
    worker->process->SignalGroup(SIGCONT);
  }
  HastenKill(ladder);
}

void WorkerGroup::HastenKill(const StopLadder& ladder) {
  if (killed_) return;
  if (ladder.KillsAtOnce()) {
    KillAll();
    return;
  }
  if (ladder.grace == StopLadder::kForever) return;
  const auto kill_at = std::chrono::steady_clock::now() + ladder.grace;
  if (kill_at_.has_value() && *kill_at_ <= kill_at) return;
  kill_at_ = kill_at;
  timer_.expires_at(kill_at);
  AwaitTimer([this] { KillAll(); });
}

void WorkerGroup::KillAll() {
  killed_ = true;
  ForwardSignal(SIGKILL);
  timer_.expires_after(give_up_);
  AwaitTimer([this] { GiveUp(); });
}

void WorkerGroup::GiveUp() {
  for (const auto& worker : workers_) {
    if (worker->status.has_value()) continue;
    worker->process->Abandon();
    worker->out->Finish();
    worker->err->Finish();
    if (callbacks_.on_warning) {
      callbacks_.on_warning(absl::StrCat("rank ", worker->spec.rank, ": process ",
                                         worker->process->pid(), " did not end ", give_up_.count(),
                                         " ms after SIGKILL and is left behind"));
    }
  }
  Finish();
}

void WorkerGroup::AwaitTimer(std::function<void()> rung) {
  timer_.async_wait([this, alive = std::weak_ptr<void>(alive_),
                     rung = std::move(rung)](boost::system::error_code error) {
    if (!alive.expired() && !error && state_ == State::kStopping) rung();
  });
}

void WorkerGroup::ForwardSignal(int signal) {
  for (const auto& worker : workers_) worker->process->SignalGroup(signal);
}

void WorkerGroup::FinishIfAllGone() {
  if (running() == 0 && !start_failed_) Finish();
}

void WorkerGroup::Finish() {
  state_ = State::kDone;
  timer_.cancel();
  GroupResult result;
  result.failure = failure_;
  result.end = failure_.has_value() ? GroupEnd::kFailed
               : stop_requested_    ? GroupEnd::kStopped
                                    : GroupEnd::kSucceeded;
  for (const auto& worker : workers_) {
    result.exits.push_back({worker->spec.rank, worker->spec.local_rank, worker->process->pid(),
                            worker->status, worker->stopped_by_group});
    result.log_bytes_dropped += worker->out->dropped_bytes() + worker->err->dropped_bytes();
  }
  // A copy, and the last thing done: the callback may destroy the group.
  const auto on_done = callbacks_.on_done;
  if (on_done) on_done(result);
}

int WorkerGroup::running() const {
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [](const auto& worker) {
    return !worker->status.has_value();
  }));
}

std::vector<pid_t> WorkerGroup::pids() const {
  std::vector<pid_t> pids;
  for (const auto& worker : workers_) pids.push_back(worker->process->pid());
  return pids;
}

}  // namespace muster::worker
