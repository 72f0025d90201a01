#include "worker/group/group_worker.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <iterator>
#include <utility>

#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"

#include "base/failure.h"
#include "base/safe_path.h"
#include "base/text.h"
#include "worker/output/console.h"
#include "worker/output/output.h"
#include "worker/process/process.h"
#include "worker/process/spawn.h"
#include "worker/tree/orphan_hunt.h"

namespace muster::worker {

std::optional<std::chrono::steady_clock::time_point> GroupWorker::LastOutput() const {
  // nullopt compares less than any time.
  return std::max(out->last_output(), err->last_output());
}

WorkerExit GroupWorker::Exit() const {
  return {spec.rank, spec.local_rank, pid(), status, stopped_by_group, stuck};
}

absl::StatusOr<EndPipe> EndPipe::Make() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return base::SystemFailure(absl::StatusCode::kInternal, "make", "a pipe between workers");
  }
  EndPipe end;
  end.reading_.reset(ends[0]);
  end.writing_.reset(ends[1]);
  return end;
}

void EndPipe::AddTo(SpawnRequest& request) const {
  request.more_fds = {reading_.get(), writing_.get()};
  request.env.push_back(absl::StrCat(kVariable, "=3 4"));
}

WorkerStarter::WorkerStarter(boost::asio::io_context& io, Console& console, int cgroup_fd)
    : io_(io), console_(console), cgroup_fd_(cgroup_fd), slots_(StdioSlots::Take()) {}

absl::StatusOr<std::unique_ptr<GroupWorker>> WorkerStarter::Start(const WorkerSpec& spec,
                                                                  const EndPipe* end,
                                                                  Callbacks callbacks) {
  if (!spec.directory.empty()) {
    absl::Status made = MakeOwnDirectory(spec.directory);
    if (!made.ok()) return made;
  }
  auto out = Output::Open(io_, spec.stdout_spec, StreamKind::kStdout, console_,
                          callbacks.on_log_loss, callbacks.on_prompt);
  if (!out.ok()) return out.status();
  auto err = Output::Open(io_, spec.stderr_spec, StreamKind::kStderr, console_,
                          callbacks.on_log_loss, callbacks.on_prompt);
  if (!err.ok()) return err.status();

  SpawnRequest request;
  request.argv = spec.argv;
  request.common_env = spec.common_env;
  request.env = spec.env;
  AddMark(AgentMark(), &request.env);
  if (end != nullptr) end->AddTo(request);
  request.cpus = spec.cpus;
  if (slots_.has_value()) request.slots = &*slots_;
  request.join_fd = cgroup_fd_;
  request.stdout_fd = (*out)->child_fd();
  request.stderr_fd = (*err)->child_fd();
  absl::StatusOr<Spawned> spawned = Spawn(request);
  if (!spawned.ok()) return spawned.status();

  const pid_t pid = spawned->pid;
  (*out)->Start(pid);
  (*err)->Start(pid);
  auto process = std::make_unique<Process>(io_, *std::move(spawned), std::move(callbacks.on_exit));
  return std::make_unique<GroupWorker>(
      GroupWorker{spec, *std::move(out), *std::move(err), std::move(process)});
}

absl::Status MakeOwnDirectory(const std::string& directory) {
  constexpr char kAttempt[] = "cannot create log directory";
  const absl::StatusOr<base::Spot> spot = base::FindSpot(directory);
  if (!spot.ok()) {
    return base::Failure(absl::StatusCode::kFailedPrecondition, kAttempt, directory,
                         spot.status().message());
  }
  if (::mkdirat(spot->directory.get(), spot->name.c_str(), 0700) == 0 || errno == EEXIST) {
    return absl::OkStatus();
  }
  return base::SystemFailure(absl::StatusCode::kFailedPrecondition, kAttempt, directory);
}

void RemoveIfEmpty(const std::string& directory) {
  ::rmdir(directory.c_str());
}

namespace {

// The pauses before retries when the system cannot create a process, two seconds in all. What used
// up the processes may exit meanwhile: the previous round's workers, or a build.
constexpr std::chrono::milliseconds kForkPauses[] = {
    std::chrono::milliseconds(30),  std::chrono::milliseconds(60),  std::chrono::milliseconds(120),
    std::chrono::milliseconds(240), std::chrono::milliseconds(480), std::chrono::milliseconds(960)};

}  // namespace

void StartQueue::Begin(std::vector<WorkerSpec> specs) {
  waiting_.assign(std::make_move_iterator(specs.rbegin()), std::make_move_iterator(specs.rend()));
  StartRest(0);
}

void StartQueue::StartRest(std::size_t tries) {
  for (; !waiting_.empty(); waiting_.pop_back()) {
    const absl::Status status = callbacks_.start(waiting_.back());
    if (status.ok()) continue;
    if (!absl::IsResourceExhausted(status) || tries == std::size(kForkPauses)) {
      Post([this, spec = std::move(waiting_.back()), status] {
        callbacks_.on_failed(spec, status);
      });
      waiting_.clear();
      return;
    }
    retry_.After(kForkPauses[tries], [this, tries] { StartRest(tries + 1); });
    return;
  }
  Post(callbacks_.on_over);
}

void StartQueue::Drop() {
  if (waiting_.empty()) return;
  waiting_.clear();
  retry_.Cancel();
  Post(callbacks_.on_over);
}

void StartQueue::Post(std::function<void()> call) {
  boost::asio::post(io_, lifetime_.Guard(std::move(call)));
}

std::string HiddenPrompt(const WorkerSpec& spec, const std::string& prompt) {
  const std::string& file = spec.stdout_spec.file;
  return absl::StrCat("rank ", spec.rank, " waits at the prompt of a debugger, ", prompt,
                      ", but its output is not shown here",
                      file.empty() ? "" : absl::StrCat(" (it is in ", file, ")"),
                      ": --tee shows what --redirects hides, and --local-ranks-filter=",
                      spec.local_rank, " shows this rank");
}

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

}  // namespace

FailureRecord CouldNotBeStarted(const WorkerSpec& spec, const absl::Status& status) {
  FailureRecord record = RecordOf(spec);
  record.status.exit_code = absl::IsNotFound(status) ? kExitNotFound : kExitNotExecutable;
  record.what = absl::StrCat("could not be started: ", status.message());
  record.lost_touch = absl::IsDeadlineExceeded(status);
  return record;
}

FailureRecord FailedWith(const WorkerSpec& spec, pid_t pid, const ExitStatus& status,
                         std::string stderr_tail, const KillSuspects& suspects) {
  FailureRecord failure = RecordOf(spec);
  failure.pid = pid;
  failure.status = status;
  failure.what = DescribeExit(status);
  failure.stderr_tail = std::move(stderr_tail);
  // A shell's exit code if not it, but its child was killed.
  const bool passed_on = status.exit_code == 128 + SIGKILL;
  if (!suspects.kill_reason.empty()) {
    failure.what = status.signal != 0
                       ? absl::StrCat("was killed by muster (", base::SignalName(status.signal),
                                      status.core_dumped ? ", core dumped" : "", "), as ",
                                      suspects.kill_reason)
                       : absl::StrCat(failure.what, " after muster had signalled it, as ",
                                      suspects.kill_reason);
    return failure;
  }
  if (status.signal != SIGKILL && !passed_on) return failure;
  if (suspects.guard_has_struck) {
    failure.lost_touch = true;
    absl::StrAppend(&failure.what, passed_on ? " after one of its processes was killed" : "",
                    " as its node had lost touch with the rendezvous");
  } else if (suspects.oom.ExplainsOneMore()) {
    absl::StrAppend(&failure.what, passed_on ? " after one of its processes was killed " : ", ",
                    suspects.oom.Describe());
  }
  return failure;
}

}  // namespace muster::worker
