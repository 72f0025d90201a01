#include "worker/worker_group.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iterator>

#include <boost/asio/post.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/agent_mark.h"
#include "worker/cgroup_paths.h"
#include "worker/console.h"
#include "worker/leftovers.h"
#include "worker/output.h"
#include "worker/process.h"
#include "worker/process_info.h"
#include "worker/process_state.h"
#include "worker/spawn.h"

namespace muster::worker {

struct WorkerGroup::Worker {
  WorkerSpec spec;
  std::unique_ptr<Output> out;
  std::unique_ptr<Output> err;
  std::unique_ptr<Process> process;
  std::optional<ExitStatus> status;
  bool stopped_by_group = false;
  // As in WorkerExit.
  std::string stuck;
  // Why we killed it, or a process that came from it (KillFor).
  std::string kill_reason;
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

// After the last worker's end: by then what died with it is gone, and what had just been forked has
// called exec.
constexpr std::chrono::milliseconds kSettle(200);

// Before each further try to start a worker when the system has no process to give; two seconds
// altogether. Whatever used them up may end meanwhile: the workers of the round before, a build.
constexpr std::chrono::milliseconds kForkPauses[] = {
    std::chrono::milliseconds(30),  std::chrono::milliseconds(60),  std::chrono::milliseconds(120),
    std::chrono::milliseconds(240), std::chrono::milliseconds(480), std::chrono::milliseconds(960)};

// How long the destructor waits.
constexpr std::chrono::seconds kDestructorWait(1);

}  // namespace

WorkerGroup::WorkerGroup(boost::asio::io_context& io, WorkerGroupOptions options, Console& console,
                         WorkerGroupCallbacks callbacks)
    : io_(io),
      options_(options),
      console_(console),
      callbacks_(std::move(callbacks)),
      retry_(io),
      timer_(io),
      settled_(io),
      alive_(std::make_shared<char>()) {}

WorkerGroup::~WorkerGroup() {
  if (!tree_.has_value()) return;
  // All get the signal before any is waited for.
  if (cgroup_.has_value()) cgroup_->Kill();
  tree_->Signal({SIGKILL});
  workers_.clear();
  tree_->KillLeftovers(kDestructorWait);
}

void WorkerGroup::Start(std::vector<WorkerSpec> specs) {
  if (state_ != State::kNew || specs.empty()) std::abort();
  state_ = State::kRunning;
  const std::string places = ReadSmallFile("/proc/self/cgroup");
  const std::string mounts = ReadSmallFile("/proc/self/mountinfo");
  const std::optional<CgroupPath> own = FindCgroup("", places, mounts);
  oom_.emplace(own, FindCgroup("memory", places, mounts));
  if (options_.use_cgroup) {
    if (auto cgroup = WorkerCgroup::Create(own)) cgroup_.emplace(*std::move(cgroup));
  }
  slots_ = StdioSlots::Take();
  tree_.emplace(io_, [this] { FinishIfAllGone(); });
  WatchStops();
  StartGuard(specs.size());
  unstarted_.assign(std::make_move_iterator(specs.rbegin()), std::make_move_iterator(specs.rend()));
  StartWorkers(0);
}

void WorkerGroup::StartWorkers(std::size_t tries) {
  for (; !unstarted_.empty(); unstarted_.pop_back()) {
    const absl::Status status = StartWorker(unstarted_.back());
    if (status.ok()) continue;
    if (!absl::IsResourceExhausted(status) || tries == std::size(kForkPauses)) {
      const WorkerSpec spec = std::move(unstarted_.back());
      unstarted_.clear();
      return OnStartFailed(spec, status);
    }
    retry_.expires_after(kForkPauses[tries]);
    retry_.async_wait(
        [this, tries, alive = std::weak_ptr<void>(alive_)](boost::system::error_code error) {
          if (!alive.expired() && !error && state_ == State::kRunning) StartWorkers(tries + 1);
        });
    return;
  }
  boost::asio::post(io_, [this, alive = std::weak_ptr<void>(alive_)] {
    if (alive.expired() || state_ != State::kRunning || !callbacks_.on_started) return;
    callbacks_.on_started();
  });
}

// Told from the loop, so that nobody hears of a failure before Start() has returned.
void WorkerGroup::OnStartFailed(const WorkerSpec& spec, const absl::Status& status) {
  start_failed_ = true;
  boost::asio::post(
      io_, [this, alive = std::weak_ptr<void>(alive_), failure = CouldNotBeStarted(spec, status)] {
        if (alive.expired()) return;
        start_failed_ = false;
        OnFailure(failure);
        FinishIfAllGone();
      });
}

void WorkerGroup::WatchStops() {
  StopWatch::Callbacks callbacks;
  callbacks.on_stopped = [this](pid_t pid, int signal) {
    const Worker* const worker = FindByPid(pid);
    if (worker == nullptr || !callbacks_.on_stopped) return;
    callbacks_.on_stopped(worker->spec.rank, pid,
                          absl::StrCat("was stopped by ", SignalName(signal)));
  };
  callbacks.on_continued = [this](pid_t pid) {
    const Worker* const worker = FindByPid(pid);
    if (worker != nullptr && callbacks_.on_continued)
      callbacks_.on_continued(worker->spec.rank, pid);
  };
  stop_watch_.emplace(io_, std::move(callbacks));
}

// Before the first worker: an agent may be killed at any time from then on.
void WorkerGroup::StartGuard(std::size_t capacity) {
  absl::StatusOr<OrphanGuard> guard =
      OrphanGuard::Start({.capacity = capacity,
                          .mark = AgentMark(),
                          .cgroup = cgroup_.has_value() ? cgroup_->path() : "",
                          .death_notice = options_.death_notice});
  if (guard.ok()) {
    guard_.emplace(*std::move(guard));
    guard_->SetDeadline(deadline_);
    tree_->AddStranger(guard_->pid());
    return;
  }
  boost::asio::post(io_, [this, alive = std::weak_ptr<void>(alive_),
                          why = std::string(guard.status().message())] {
    if (!alive.expired()) Warn("processes that workers start would outlive a killed agent: " + why);
  });
}

absl::Status WorkerGroup::StartWorker(const WorkerSpec& spec) {
  auto worker = std::make_unique<Worker>();
  worker->spec = spec;
  const auto on_log_loss = [this, raw = worker.get()](const std::string& what) {
    OnLogLoss(raw->spec, what);
  };
  auto out = Output::Open(io_, spec.stdout_spec, StreamKind::kStdout, console_, on_log_loss);
  if (!out.ok()) return out.status();
  worker->out = *std::move(out);
  auto err = Output::Open(io_, spec.stderr_spec, StreamKind::kStderr, console_, on_log_loss);
  if (!err.ok()) return err.status();
  worker->err = *std::move(err);

  SpawnRequest request;
  request.argv = spec.argv;
  request.common_env = spec.common_env;
  request.env = spec.env;
  AddMark(AgentMark(), &request.env);
  request.cpus = spec.cpus;
  if (slots_.has_value()) request.slots = &*slots_;
  if (cgroup_.has_value()) request.join_fd = cgroup_->join_fd();
  UniqueFd null;
  if (spec.stdin_policy == StdinPolicy::kNull) {
    null.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    request.stdin_fd = null.get();
  }
  request.stdout_fd = worker->out->child_fd();
  request.stderr_fd = worker->err->child_fd();
  absl::StatusOr<Spawned> spawned = Spawn(request);
  if (!spawned.ok()) return spawned.status();

  const pid_t pid = spawned->pid;
  tree_->AddWorker(pid);
  stop_watch_->Add(pid);
  if (guard_) guard_->Watch(pid);
  worker->out->Start(pid);
  worker->err->Start(pid);
  worker->process = std::make_unique<Process>(
      io_, *std::move(spawned),
      [this, raw = worker.get()](const ExitStatus& status) { OnExit(*raw, status); });
  workers_.push_back(std::move(worker));
  ++running_;
  return absl::OkStatus();
}

void WorkerGroup::OnExit(Worker& worker, const ExitStatus& status) {
  worker.status = status;
  --running_;
  if (guard_) guard_->Forget(worker.process->pid());
  stop_watch_->Remove(worker.process->pid());
  tree_->RemoveWorker(worker.process->pid());
  // What it has started may have more to say, but these are its own last words.
  worker.out->Drain();
  worker.err->Drain();
  if (!status.Succeeded() && !worker.stopped_by_group) {
    if (state_ == State::kRunning) {
      OnFailure(RecordFailure(worker));
    } else {
      other_failures_.push_back(RecordFailure(worker));
    }
  }
  FinishIfAllGone();
}

FailureRecord WorkerGroup::RecordFailure(const Worker& worker) {
  FailureRecord failure = RecordOf(worker.spec);
  failure.pid = worker.process->pid();
  failure.status = *worker.status;
  failure.what = DescribeExit(failure.status);
  failure.stderr_tail = worker.err->Tail();
  // So a shell passes it on when it was not the shell itself that was killed.
  const bool passed_on = failure.status.exit_code == 128 + SIGKILL;
  if (!worker.kill_reason.empty()) {
    absl::StrAppend(&failure.what, ": ", worker.kill_reason);
  } else if ((failure.status.signal == SIGKILL || passed_on) && guard_ && guard_->has_struck()) {
    failure.lost_touch = true;
    absl::StrAppend(&failure.what, passed_on ? " after a process of it was killed" : "",
                    " as its node had lost touch with the rendezvous");
  } else if ((failure.status.signal == SIGKILL || passed_on) && oom_->ExplainsOneMore()) {
    failure.out_of_memory = true;
    absl::StrAppend(&failure.what, passed_on ? " after a process of it was killed " : ", ",
                    oom_->Describe());
  }
  return failure;
}

void WorkerGroup::OnFailure(FailureRecord failure) {
  if (failure_.has_value()) return;
  failure_ = std::move(failure);
  if (callbacks_.on_first_failure) callbacks_.on_first_failure(*failure_);
  // The callback may have begun to stop the group its own way.
  if (state_ == State::kRunning) BeginStop(options_.ladder);
}

void WorkerGroup::OnLogLoss(const WorkerSpec& spec, const std::string& what) {
  // All the others are likely to be on the same disk.
  if (std::exchange(log_loss_told_, true)) return;
  Warn(absl::StrCat("rank ", spec.rank, ": ", what, "; output is being lost"));
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
  retry_.cancel();
  if (!unstarted_.empty() && running() == 0) {
    // No worker's exit will come to end the group.
    boost::asio::post(io_, [this, alive = std::weak_ptr<void>(alive_)] {
      if (!alive.expired() && state_ == State::kStopping) FinishIfAllGone();
    });
  }
  unstarted_.clear();
  give_up_ = ladder.give_up;
  first_signal_ = ladder.first_signal;
  for (const auto& worker : workers_) {
    worker->stopped_by_group = !worker->status.has_value() && !worker->process->HasEnded();
  }
  // What is stopped (SIGSTOP) could not answer the first signal.
  if (!ladder.KillsAtOnce()) {
    before_first_signal_ = tree_->Members();
    tree_->Signal({ladder.first_signal, SIGCONT});
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
  AwaitTimer([this] { OnGraceOver(); });
}

void WorkerGroup::OnGraceOver() {
  const std::vector<ProcessInfo> leftovers = tree_->Leftovers();
  if (!leftovers.empty()) {
    Warn(absl::StrCat("workers have left behind what did not end in the grace time and is killed: ",
                      Enumerate(leftovers)));
  }
  KillAll();
}

void WorkerGroup::KillAll() {
  killed_ = true;
  if (cgroup_.has_value()) cgroup_->Kill();
  tree_->Signal({SIGKILL});
  timer_.expires_after(give_up_);
  AwaitTimer([this] { GiveUp(); });
}

void WorkerGroup::GiveUp() {
  const auto how = [this](const std::string& state) {
    return absl::StrCat(" did not end ", give_up_.count(), " ms after SIGKILL and is left behind",
                        state.empty() ? "" : "; it ", state);
  };
  const std::vector<ProcessInfo> leftovers = tree_->Leftovers();
  for (const auto& worker : workers_) {
    if (worker->status.has_value()) continue;
    const pid_t pid = worker->process->pid();
    worker->stuck = DescribeState(pid);
    worker->process->Abandon();
    Warn(absl::StrCat("rank ", worker->spec.rank, ": process ", pid, how(worker->stuck)));
  }
  for (const ProcessInfo& leftover : leftovers) {
    Warn(absl::StrCat(Describe(leftover), ", which a worker had started,",
                      how(DescribeState(leftover.pid))));
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

bool WorkerGroup::KillFor(pid_t pid, int signal, const std::string& reason) {
  if (!tree_.has_value()) return false;
  const std::optional<ProcessInfo> process = ReadProcess(pid);
  const std::optional<ProcessInfo> root = tree_->RootOf(pid);
  if (!process.has_value() || !root.has_value() || !SignalProcess(*process, signal)) return false;
  if (Worker* const worker = FindByPid(root->pid)) worker->kill_reason = reason;
  return true;
}

WorkerGroup::Worker* WorkerGroup::FindByPid(pid_t pid) const {
  const auto found = std::find_if(workers_.begin(), workers_.end(), [pid](const auto& worker) {
    return worker->process->pid() == pid;
  });
  return found == workers_.end() ? nullptr : found->get();
}

void WorkerGroup::AddStranger(pid_t child) {
  if (tree_.has_value()) tree_->AddStranger(child);
}

std::optional<std::chrono::steady_clock::time_point> WorkerGroup::LastOutput(int rank) const {
  std::optional<std::chrono::steady_clock::time_point> last;
  for (const auto& worker : workers_) {
    if (worker->spec.rank != rank) continue;
    // Nothing is less than any time.
    last = std::max(worker->out->last_output(), worker->err->last_output());
  }
  return last;
}

void WorkerGroup::FinishIfAllGone() {
  if (running() > 0 || start_failed_ || !unstarted_.empty()) return;
  // The control group knows for certain; /proc may show nothing of processes that fork and end
  // faster than it is read. These will be heard of again, as orphans that have ended.
  const bool populated = cgroup_.has_value() && cgroup_->IsPopulated();
  if (!populated && tree_->Leftovers().empty()) return Finish();
  if (!std::exchange(workers_gone_, true)) AwaitSettled(kSettle);
  if (state_ == State::kRunning) {
    BeginStop(options_.ladder);
  } else if (killed_) {
    // Some may have been started while the others were killed.
    tree_->Signal({SIGKILL});
  }
}

// Looks again less and less often: on a busy machine a process may take its time from fork to exec.
void WorkerGroup::AwaitSettled(std::chrono::milliseconds after) {
  settled_.expires_after(after);
  settled_.async_wait([this, after, alive = std::weak_ptr<void>(alive_)](auto error) {
    if (alive.expired() || error || state_ != State::kStopping || killed_) return;
    if (RemindLeftovers(tree_->Leftovers(), before_first_signal_, first_signal_)) {
      AwaitSettled(2 * after);
    }
  });
}

void WorkerGroup::Finish() {
  state_ = State::kDone;
  timer_.cancel();
  settled_.cancel();
  // By the time it is waited for it has ended.
  if (guard_) guard_->Dismiss();
  GroupResult result;
  result.failure = failure_;
  result.other_failures = other_failures_;
  result.end = failure_.has_value() ? GroupEnd::kFailed
               : stop_requested_    ? GroupEnd::kStopped
                                    : GroupEnd::kSucceeded;
  std::vector<int> losers;
  for (const auto& worker : workers_) {
    worker->out->Finish();
    worker->err->Finish();
    result.exits.push_back({worker->spec.rank, worker->spec.local_rank, worker->process->pid(),
                            worker->status, worker->stopped_by_group, worker->stuck});
    const std::uint64_t dropped = worker->out->dropped_bytes() + worker->err->dropped_bytes();
    if (dropped > 0) losers.push_back(worker->spec.rank);
    result.log_bytes_dropped += dropped;
  }
  if (!losers.empty()) {
    Warn(absl::StrCat("log files did not take ", result.log_bytes_dropped,
                      " bytes of the output of rank ", absl::StrJoin(losers, ", ")));
  }
  // Before on_done, which may start another group.
  guard_.reset();
  stop_watch_.reset();
  tree_.reset();
  cgroup_.reset();
  // A copy, and the last thing done: the callback may destroy the group.
  const auto on_done = callbacks_.on_done;
  if (on_done) on_done(result);
}

void WorkerGroup::Warn(const std::string& sentence) const {
  if (callbacks_.on_warning) callbacks_.on_warning(sentence);
}

void WorkerGroup::SetDeadline(std::optional<std::chrono::steady_clock::time_point> deadline) {
  deadline_ = deadline;
  if (guard_) guard_->SetDeadline(deadline);
}

std::vector<RunningWorker> WorkerGroup::RunningWorkers() const {
  std::vector<RunningWorker> running;
  for (const auto& worker : workers_) {
    if (!worker->status.has_value()) running.push_back({worker->spec.rank, worker->process->pid()});
  }
  return running;
}

std::vector<pid_t> WorkerGroup::pids() const {
  std::vector<pid_t> pids;
  for (const auto& worker : workers_) pids.push_back(worker->process->pid());
  return pids;
}

}  // namespace muster::worker
