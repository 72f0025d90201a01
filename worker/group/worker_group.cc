#include "worker/group/worker_group.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>
#include <variant>

#include <boost/asio/post.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/signal_names.h"
#include "worker/group/own_directory.h"
#include "worker/group/worker_failure.h"
#include "worker/output/console.h"
#include "worker/process/cgroup_paths.h"
#include "worker/process/process_info.h"
#include "worker/tree/agent_mark.h"

namespace muster::worker {
namespace {

// How long the destructor waits.
constexpr std::chrono::seconds kDestructorWait(1);

constexpr char kUnguarded[] = "processes that workers start would outlive a killed agent";

}  // namespace

WorkerGroup::WorkerGroup(boost::asio::io_context& io, WorkerGroupOptions options, Console& console,
                         WorkerGroupCallbacks callbacks)
    : io_(io),
      options_(options),
      console_(console),
      callbacks_(std::move(callbacks)),
      life_(options.ladder),
      timer_(io),
      starts_(io, {.start = [this](const WorkerSpec& spec) { return StartWorker(spec); },
                   .on_over = [this] { Do(life_.StartsOver()); },
                   .on_failed =
                       [this](const WorkerSpec& spec, const absl::Status& status) {
                         start_failure_ = CouldNotBeStarted(spec, status);
                         start_failure_->failed_at = std::chrono::steady_clock::now();
                         Do(life_.StartFailed());
                       }}) {}

WorkerGroup::~WorkerGroup() {
  if (!tree_.has_value()) return;
  // All get the signal before any is waited for.
  ladder_->Kill();
  workers_.clear();
  tree_->KillLeftovers(kDestructorWait);
}

void WorkerGroup::Start(std::vector<WorkerSpec> specs) {
  if (!life_.is_new() || specs.empty()) std::abort();
  life_.Begin();
  const std::string places = ReadSmallFile("/proc/self/cgroup");
  const std::string mounts = ReadSmallFile("/proc/self/mountinfo");
  const std::optional<CgroupPath> own = FindCgroup("", places, mounts);
  oom_.emplace(own, FindCgroup("memory", places, mounts));
  if (options_.use_cgroup) {
    if (auto cgroup = WorkerCgroup::Create(own)) cgroup_.emplace(*std::move(cgroup));
  }
  starter_.emplace(io_, console_, cgroup_.has_value() ? cgroup_->join_fd() : -1);
  tree_.emplace(io_, [this] { Do(life_.OrphanEnded()); });
  ladder_.emplace(*tree_, cgroup_.has_value() ? &*cgroup_ : nullptr);
  WatchStops();
  StartGuard(specs.size());
  starts_.Begin(std::move(specs));
}

void WorkerGroup::WatchStops() {
  StopWatch::Callbacks callbacks;
  callbacks.on_stopped = [this](pid_t pid, int signal) {
    const GroupWorker* const worker = FindByPid(pid);
    if (worker == nullptr || !callbacks_.on_stopped) return;
    callbacks_.on_stopped(worker->spec.rank, pid,
                          absl::StrCat("was stopped by ", base::SignalName(signal)));
  };
  callbacks.on_continued = [this](pid_t pid) {
    const GroupWorker* const worker = FindByPid(pid);
    if (worker == nullptr || !callbacks_.on_continued) return;
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
                          .file = options_.file_of_agent,
                          .death_notice = options_.death_notice});
  if (guard.ok()) {
    guard_.emplace(*std::move(guard));
    guard_->SetDeadline(deadline_);
    return OnGuardStarted();
  }
  boost::asio::post(io_, lifetime_.Guard([this, why = std::string(guard.status().message())] {
    Warn(absl::StrCat(kUnguarded, ": ", why));
  }));
}

void WorkerGroup::OnGuardStarted() {
  tree_->AddStranger(guard_->pid());
  guard_watch_.emplace(io_, guard_->pid(), [this] { OnGuardDied(); });
}

void WorkerGroup::OnGuardDied() {
  const absl::Status again = guard_->StartAgain();
  if (again.ok()) OnGuardStarted();
  Warn(absl::StrCat(
      "the guard that ends what is left of workers when this agent is killed has died; ",
      again.ok() ? "another has been started" : absl::StrCat(kUnguarded, ": ", again.message())));
}

absl::Status WorkerGroup::StartWorker(const WorkerSpec& spec) {
  // This program stood still among the starts: the guard would find the worker only when it runs.
  if (deadline_.has_value() && *deadline_ <= std::chrono::steady_clock::now()) {
    return absl::DeadlineExceededError("its node had lost touch with the rendezvous");
  }
  auto started = starter_->Start(
      spec,
      {.on_log_loss = [this, rank = spec.rank](const std::string& what) { OnLogLoss(rank, what); },
       .on_exit = [this,
                   index = workers_.size()](const ExitStatus& status) { OnExit(index, status); }});
  if (!started.ok()) return started.status();
  const pid_t pid = (*started)->pid();
  tree_->AddWorker(pid);
  stop_watch_->Add(pid);
  if (guard_) guard_->Watch(pid);
  workers_.push_back(*std::move(started));
  life_.WorkerStarted();
  return absl::OkStatus();
}

void WorkerGroup::OnExit(std::size_t index, const ExitStatus& status) {
  GroupWorker& worker = *workers_[index];
  worker.status = status;
  if (!worker.ended_at) worker.ended_at = std::chrono::steady_clock::now();
  if (guard_) guard_->Forget(worker.pid());
  stop_watch_->Remove(worker.pid());
  tree_->RemoveWorker(worker.pid());
  // What it has started may have more to say, but these are its own last words.
  worker.out->Drain();
  worker.err->Drain();
  // One that failed may have left a process behind that is about to write why.
  if (status.Succeeded() && !worker.spec.directory.empty()) RemoveIfEmpty(worker.spec.directory);
  const bool expected = worker.stopped_by_group || worker.end_is_told;
  Do(life_.WorkerExited(index, expected             ? WorkerEnd::kStopped
                               : status.Succeeded() ? WorkerEnd::kSucceeded
                                                    : WorkerEnd::kFailed));
}

FailureRecord WorkerGroup::RecordFailure(const GroupWorker& worker) {
  // One that we have killed may take its time to die.
  const ExitStatus status = worker.status.value_or(ExitStatus{.signal = SIGKILL});
  FailureRecord failure = FailedWith(worker.spec, worker.pid(), status, worker.err->Tail(),
                                     {.kill_reason = worker.kill_reason,
                                      .guard_has_struck = guard_ && guard_->has_struck(),
                                      .oom = *oom_});
  failure.failed_at = worker.ended_at.value_or(std::chrono::steady_clock::now());
  return failure;
}

void WorkerGroup::OnLogLoss(int rank, const std::string& what) {
  if (callbacks_.on_output_lost) callbacks_.on_output_lost(rank, what);
  // All the others are likely to be on the same disk.
  if (std::exchange(log_loss_told_, true)) return;
  Warn(absl::StrCat("rank ", rank, ": ", what, "; output is being lost"));
}

void WorkerGroup::Stop(const StopLadder& ladder) {
  Do(life_.Stop(ladder, std::chrono::steady_clock::now()));
}

void WorkerGroup::Do(const GroupActions& actions) {
  const base::Lifetime::Watch watch = lifetime_.watch();
  for (const GroupAction& action : actions) {
    std::visit([this](const auto& kind) { Do(kind); }, action);
    if (watch.over()) return;
  }
  AwaitDeadline();
}

void WorkerGroup::AwaitDeadline() {
  if (awaited_ == life_.NextDeadline()) return;
  awaited_ = life_.NextDeadline();
  if (!awaited_.has_value()) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(*awaited_);
  timer_.async_wait(lifetime_.Guard([this](boost::system::error_code error) {
    if (error) return;
    awaited_.reset();
    Do(life_.Tick(std::chrono::steady_clock::now()));
  }));
}

void WorkerGroup::Do(const TellStarted&) {
  if (callbacks_.on_started) callbacks_.on_started();
}

void WorkerGroup::Do(const TellFirstFailure& failure) {
  result_.failure = failure.worker ? RecordFailure(*workers_[*failure.worker]) : start_failure_;
  if (callbacks_.on_first_failure) callbacks_.on_first_failure(*result_.failure);
  Do(life_.FailureTold(std::chrono::steady_clock::now()));
}

void WorkerGroup::Do(const KeepFailure& failure) {
  result_.other_failures.push_back(RecordFailure(*workers_[failure.worker]));
}

void WorkerGroup::Do(const Halt&) {
  starts_.Drop();
  for (const auto& worker : workers_) {
    worker->stopped_by_group =
        !worker->status.has_value() && !worker->end_is_told && !worker->process->HasEnded();
  }
}

void WorkerGroup::Do(const SignalTree& signal) {
  ladder_->Signal(signal.signal);
}

void WorkerGroup::Do(const NameLeftovers&) {
  if (const std::string sentence = ladder_->NameLeftovers(); !sentence.empty()) Warn(sentence);
}

void WorkerGroup::Do(const KillTree&) {
  ladder_->Kill();
}

void WorkerGroup::Do(const KillStragglers&) {
  ladder_->KillStragglers();
}

void WorkerGroup::Do(const LookForLeftovers&) {
  const bool any = ladder_->AnyLeft();
  Do(life_.LeftoversSeen(any, std::chrono::steady_clock::now()));
}

void WorkerGroup::Do(const RemindOfSignal& reminder) {
  const bool answering = ladder_->Remind(reminder.first_signal);
  Do(life_.LeftoversReminded(answering, std::chrono::steady_clock::now()));
}

void WorkerGroup::Do(const LeaveBehind& given_up) {
  for (const std::string& sentence : ladder_->LeaveBehind(given_up.after, workers_)) {
    Warn(sentence);
  }
}

void WorkerGroup::Do(const FinishGroup&) {
  timer_.cancel();
  guard_watch_.reset();
  // By the time it is waited for it has ended.
  if (guard_) guard_->Dismiss();
  CompleteResult();
  // Before on_done, which may start another group.
  guard_.reset();
  stop_watch_.reset();
  ladder_.reset();
  tree_.reset();
  starter_.reset();
  cgroup_.reset();
  // Copies, and the last thing done: the callback may destroy the group.
  const auto on_done = callbacks_.on_done;
  const GroupResult result = result_;
  if (on_done) on_done(result);
}

void WorkerGroup::CompleteResult() {
  result_.end = life_.end();
  std::vector<int> losers;
  for (const auto& worker : workers_) {
    worker->out->Finish();
    worker->err->Finish();
    result_.exits.push_back(worker->Exit());
    const std::uint64_t dropped = worker->out->dropped_bytes() + worker->err->dropped_bytes();
    if (dropped > 0) losers.push_back(worker->spec.rank);
    result_.log_bytes_dropped += dropped;
  }
  if (!losers.empty()) {
    Warn(absl::StrCat("log files did not take ", result_.log_bytes_dropped,
                      " bytes of the output of rank ", absl::StrJoin(losers, ", ")));
  }
}

void WorkerGroup::ForwardSignal(int signal) {
  for (const auto& worker : workers_) worker->process->SignalGroup(signal);
}

bool WorkerGroup::KillFor(pid_t pid, int signal, const std::string& reason) {
  if (!tree_.has_value()) return false;
  const std::optional<ProcessInfo> process = ReadProcess(pid);
  const std::optional<ProcessInfo> root = tree_->RootOf(pid);
  if (!process.has_value() || !root.has_value()) return false;
  GroupWorker* const worker = FindByPid(root->pid);
  const bool runs = worker != nullptr && !worker->status && !worker->process->HasEnded();
  if (!SignalProcess(*process, signal)) return false;
  if (worker == nullptr) return true;
  worker->kill_reason = reason;
  // Others may fail of its end, and their ends be seen before it.
  if (runs && signal == SIGKILL && pid == root->pid) {
    const auto found = std::find_if(workers_.begin(), workers_.end(),
                                    [worker](const auto& one) { return one.get() == worker; });
    const auto index = static_cast<std::size_t>(found - workers_.begin());
    boost::asio::post(io_, lifetime_.Guard([this, index] { OnKilled(index); }));
  }
  return true;
}

void WorkerGroup::OnKilled(std::size_t index) {
  GroupWorker& worker = *workers_[index];
  if (worker.status.has_value()) return;
  if (!worker.ended_at) worker.ended_at = std::chrono::steady_clock::now();
  const GroupActions actions = life_.WorkerKilled(index);
  worker.end_is_told = !actions.empty();
  worker.err->Drain();
  Do(actions);
}

GroupWorker* WorkerGroup::FindByPid(pid_t pid) const {
  const auto found = std::find_if(workers_.begin(), workers_.end(),
                                  [pid](const auto& worker) { return worker->pid() == pid; });
  return found == workers_.end() ? nullptr : found->get();
}

void WorkerGroup::AddStranger(pid_t child) {
  if (tree_.has_value()) tree_->AddStranger(child);
}

std::uint64_t WorkerGroup::log_bytes_dropped() const {
  std::uint64_t dropped = 0;
  for (const auto& worker : workers_) {
    dropped += worker->out->dropped_bytes() + worker->err->dropped_bytes();
  }
  return dropped;
}

std::optional<std::chrono::steady_clock::time_point> WorkerGroup::LastOutput(int rank) const {
  for (const auto& worker : workers_) {
    if (worker->spec.rank == rank) return worker->LastOutput();
  }
  return std::nullopt;
}

void WorkerGroup::Warn(const std::string& sentence) const {
  if (callbacks_.on_warning) callbacks_.on_warning(sentence);
}

void WorkerGroup::SetDeadline(std::optional<std::chrono::steady_clock::time_point> deadline) {
  deadline_ = deadline;
  if (guard_) guard_->SetDeadline(deadline);
}

void WorkerGroup::MoveDeathNotice(const ServerAddress& to) {
  if (guard_) guard_->MoveDeathNotice(to);
}

std::vector<RunningWorker> WorkerGroup::RunningWorkers() const {
  std::vector<RunningWorker> running;
  for (const auto& worker : workers_) {
    if (!worker->status.has_value()) running.push_back({worker->spec.rank, worker->pid()});
  }
  return running;
}

std::vector<pid_t> WorkerGroup::pids() const {
  std::vector<pid_t> pids;
  for (const auto& worker : workers_) pids.push_back(worker->pid());
  return pids;
}

}  // namespace muster::worker
