#include "worker/group/worker_group.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <boost/asio/post.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "worker/group/group_worker.h"
#include "worker/output/console.h"
#include "worker/process/process_info.h"
#include "worker/tree/orphan_hunt.h"

namespace muster::worker {
namespace {

using Clock = std::chrono::steady_clock;

// How long the destructor waits.
constexpr std::chrono::seconds kDestructorWait(1);

constexpr char kUnguarded[] = "processes started by workers would outlive a killed agent";

}  // namespace

template <typename... Params, typename... Values>
void WorkerGroup::Live(void (GroupLife::*event)(Params...), const Values&... values) {
  const base::Lifetime::Watch watch = lifetime_.watch();
  (life_.*event)(values...);
  if (watch.over()) return;
  timer_.Follow(life_.NextDeadline(), [this] { Live(&GroupLife::Tick, Clock::now()); });
}

WorkerGroup::WorkerGroup(boost::asio::io_context& io, WorkerGroupOptions options, Console& console,
                         WorkerGroupCallbacks callbacks)
    : io_(io),
      options_(options),
      console_(console),
      callbacks_(std::move(callbacks)),
      life_(*this, options.ladder, options.leftovers),
      timer_(io),
      starts_(io, {.start = [this](const WorkerSpec& spec) { return StartWorker(spec); },
                   .on_over =
                       [this] {
                         end_pipe_.reset();
                         Live(&GroupLife::StartsOver, Clock::now());
                       },
                   .on_failed =
                       [this](const WorkerSpec& spec, const absl::Status& status) {
                         end_pipe_.reset();
                         start_failure_ = CouldNotBeStarted(spec, status);
                         start_failure_->failed_at = Clock::now();
                         Live(&GroupLife::StartFailed, Clock::now());
                       }}) {}

WorkerGroup::~WorkerGroup() {
  if (!tree_.has_value()) return;
  // All get the signal before any is waited for.
  ladder_->Kill(/*again=*/false);
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
  tree_.emplace(io_, [this] { Live(&GroupLife::OrphanEnded, Clock::now()); });
  ladder_.emplace(*tree_, cgroup_.has_value() ? &*cgroup_ : nullptr, workers_);
  WatchStops();
  StartGuard(specs.size());
  MakeEndPipe();
  starts_.Begin(std::move(specs));
}

void WorkerGroup::MakeEndPipe() {
  if (!options_.ends_together) return;
  absl::StatusOr<EndPipe> end = EndPipe::Make();
  if (end.ok()) {
    end_pipe_.emplace(*std::move(end));
  } else {
    boost::asio::post(io_, lifetime_.Guard([this, why = std::string(end.status().message())] {
      Warn(absl::StrCat(why, "; each worker exits when it is done"));
    }));
  }
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

// Before the first worker, as the agent may be killed at any time from then on.
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
  tree_->ExcludeChild(guard_->pid());
  guard_watch_.emplace(io_, guard_->pid(), [this] { OnGuardDied(); });
}

void WorkerGroup::OnGuardDied() {
  const absl::Status again = guard_->StartAgain();
  if (again.ok()) OnGuardStarted();
  Warn(absl::StrCat(
      "the guard that ends leftover processes if this agent is killed has died; ",
      again.ok() ? "another has been started" : absl::StrCat(kUnguarded, ": ", again.message())));
}

absl::Status WorkerGroup::StartWorker(const WorkerSpec& spec) {
  // This program stood still among the starts: the guard would find the worker only when it runs.
  if (deadline_.has_value() && *deadline_ <= Clock::now()) {
    return absl::DeadlineExceededError("its node had lost touch with the rendezvous");
  }
  auto started = starter_->Start(
      spec, end_pipe_.has_value() ? &*end_pipe_ : nullptr,
      {.on_log_loss = [this, rank = spec.rank](const std::string& what) { OnLogLoss(rank, what); },
       .on_prompt = [this, index = workers_.size()](
                        const auto& prompt) { Warn(HiddenPrompt(workers_[index]->spec, prompt)); },
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
  if (!worker.ended_at) worker.ended_at = Clock::now();
  if (guard_) guard_->Forget(worker.pid());
  stop_watch_->Remove(worker.pid());
  tree_->RemoveWorker(worker.pid());
  // Its children may write more, but this completes its own output.
  worker.out->Drain();
  worker.err->Drain();
  // A failed worker may have left a process that is about to write the cause there.
  if (status.Succeeded() && !worker.spec.directory.empty()) RemoveIfEmpty(worker.spec.directory);
  const bool expected = worker.stopped_by_group || worker.end_is_told;
  const auto failed = [this, &status] {
    const bool as_all_may = options_.may_be_end_of_all && options_.may_be_end_of_all(status);
    return as_all_may ? WorkerEnd::kFailedAsAllMay : WorkerEnd::kFailed;
  };
  const WorkerEnd end = expected             ? WorkerEnd::kStopped
                        : status.Succeeded() ? WorkerEnd::kSucceeded
                                             : failed();
  Live(&GroupLife::WorkerExited, index, end, Clock::now());
}

FailureRecord WorkerGroup::RecordFailure(const GroupWorker& worker, bool alike) {
  // A worker that we killed may take time to die.
  const ExitStatus status = worker.status.value_or(ExitStatus{.signal = SIGKILL});
  FailureRecord failure = FailedWith(worker.spec, worker.pid(), status, worker.err->Tail(),
                                     {.kill_reason = worker.kill_reason,
                                      .guard_has_struck = guard_ && guard_->has_struck(),
                                      .oom = *oom_});
  failure.failed_at = worker.ended_at.value_or(Clock::now());
  failure.alike = alike;
  return failure;
}

void WorkerGroup::OnLogLoss(int rank, const std::string& what) {
  if (callbacks_.on_output_lost) callbacks_.on_output_lost(rank, what);
  // The others probably write to the same disk.
  if (std::exchange(log_loss_told_, true)) return;
  Warn(absl::StrCat("rank ", rank, ": ", what, "; output is being lost"));
}

void WorkerGroup::Stop(const StopLadder& ladder) {
  Live(&GroupLife::Stop, ladder, Clock::now());
}

void WorkerGroup::TellStarted() {
  if (callbacks_.on_started) callbacks_.on_started();
}

void WorkerGroup::TellFirstFailure(std::optional<std::size_t> index, bool alike) {
  if (index) {
    GroupWorker& worker = *workers_[*index];
    worker.end_is_told = !worker.status.has_value();
    result_.failure = RecordFailure(worker, alike);
  } else {
    result_.failure = start_failure_;
  }
  if (callbacks_.on_first_failure) callbacks_.on_first_failure(*result_.failure);
}

void WorkerGroup::KeepFailure(std::size_t index, bool alike) {
  result_.other_failures.push_back(RecordFailure(*workers_[index], alike));
}

void WorkerGroup::Halt() {
  halted_ = true;
  starts_.Drop();
  Resume();
  for (const auto& worker : workers_) {
    worker->stopped_by_group =
        !worker->status.has_value() && !worker->end_is_told && !worker->process->HasEnded();
  }
}

GroupPort::Stopped WorkerGroup::StopLeftovers(StopLadder::Duration grace) {
  const LeftoversStopped stopped = ladder_->StopLeftovers(grace);
  Warn(stopped.sentence);
  return stopped;
}

void WorkerGroup::KeepLeftovers() {
  Warn(ladder_->DescribeKept());
  absl::Status status;
  for (const auto& worker : workers_) {
    status.Update(worker->out->FinishForKept());
    status.Update(worker->err->FinishForKept());
  }
  if (!status.ok()) {
    Warn(absl::StrCat(status.message(), "; these processes get SIGPIPE when they print something"));
  }
  if (cgroup_) cgroup_->Release();
}

void WorkerGroup::LeaveBehind(StopLadder::Duration after) {
  for (const std::string& sentence : ladder_->LeaveBehind(after)) Warn(sentence);
}

void WorkerGroup::Finish() {
  timer_.Cancel();
  guard_watch_.reset();
  // It dies while the result is completed, so that waiting for it is short.
  if (guard_) guard_->Dismiss();
  CompleteResult();
  // Before on_done, which may start another group.
  guard_.reset();
  stop_watch_.reset();
  ladder_.reset();
  suspended_.clear();
  tree_.reset();
  starter_.reset();
  cgroup_.reset();
  // Copies, and last, as the callback may destroy the group.
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
    if (worker->dropped_bytes() > 0) losers.push_back(worker->spec.rank);
  }
  result_.log_bytes_dropped = log_bytes_dropped();
  if (!losers.empty()) {
    Warn(absl::StrCat("could not write to log files: ", result_.log_bytes_dropped,
                      " bytes of the output of rank ", absl::StrJoin(losers, ", ")));
  }
}

void WorkerGroup::ForwardSignal(int signal) {
  if (ladder_.has_value()) ladder_->Forward(signal);
}

void WorkerGroup::Suspend() {
  if (tree_.has_value() && !halted_) suspended_.emplace_back(*tree_);
}

void WorkerGroup::Resume() {
  for (const SuspendedTree& stopped : std::exchange(suspended_, {})) stopped.Continue();
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
  // Others may fail because of its death, and their exits may be noticed first.
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
  if (!worker.ended_at) worker.ended_at = Clock::now();
  worker.err->Drain();
  Live(&GroupLife::WorkerKilled, index, Clock::now());
}

GroupWorker* WorkerGroup::FindByPid(pid_t pid) const {
  const auto found = std::find_if(workers_.begin(), workers_.end(),
                                  [pid](const auto& worker) { return worker->pid() == pid; });
  return found == workers_.end() ? nullptr : found->get();
}

void WorkerGroup::ExcludeChild(pid_t child) {
  if (tree_.has_value()) tree_->ExcludeChild(child);
}

std::uint64_t WorkerGroup::log_bytes_dropped() const {
  std::uint64_t dropped = 0;
  for (const auto& worker : workers_) dropped += worker->dropped_bytes();
  return dropped;
}

std::optional<std::chrono::steady_clock::time_point> WorkerGroup::LastOutput(int rank) const {
  for (const auto& worker : workers_) {
    if (worker->spec.rank == rank) return worker->LastOutput();
  }
  return std::nullopt;
}

void WorkerGroup::Warn(const std::string& sentence) const {
  if (callbacks_.on_warning && !sentence.empty()) callbacks_.on_warning(sentence);
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
