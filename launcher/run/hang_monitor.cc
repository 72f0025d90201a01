#include "launcher/run/hang_monitor.h"

#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/failure.h"
#include "base/safe_path.h"
#include "base/text.h"
#include "launcher/machine/environment.h"
#include "worker/hang/process_evidence.h"

namespace muster::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kSocketName[] = "/beats";

// A deep TMPDIR, as some schedulers make, leaves no room for a socket's name.
bool HoldsSocket(const std::string& directory) {
  return directory.size() + sizeof kSocketName <= sizeof(sockaddr_un::sun_path);
}

absl::StatusOr<std::string> MakeSocketDirectory(const std::string& temp_dir) {
  constexpr char kAttempt[] = "make a directory for the beats' socket,";
  const std::string name = "/muster_beat_XXXXXX";
  const std::string parent = HoldsSocket(temp_dir + name) ? temp_dir : FindTempDir({}).path;
  std::string directory = parent + name;
  if (parent.empty()) {
    return base::Failure(absl::StatusCode::kFailedPrecondition, kAttempt, directory,
                         "no temporary directory can be written");
  }
  if (const auto place = base::OpenDirectory(parent); !place.ok()) {
    return base::Failure(absl::StatusCode::kFailedPrecondition, kAttempt, directory,
                         place.status().message());
  }
  if (mkdtemp(directory.data()) == nullptr) {
    return base::SystemFailure(absl::StatusCode::kFailedPrecondition, kAttempt, directory);
  }
  return directory;
}

// With beats but without a timeout nobody ever is late.
constexpr std::chrono::hours kNever(24 * 365 * 10);

worker::HangWatchOptions WatchOptions(const HangPolicy& policy) {
  // Every program can write, so none that is silent from its start is left out.
  const bool from_start = policy.output_counts && policy.first_beat_timeout.count() == 0;
  return {.timeout = policy.timeout.count() > 0 ? policy.timeout : kNever,
          .first_beat_timeout = from_start ? policy.timeout : policy.first_beat_timeout,
          .output_counts = policy.output_counts};
}

// As long as the stacks of all ranks of a node may take: nodes begin with that at about the same
// time, and kill a rank when they are done.
constexpr std::chrono::seconds kTimeForOthers(30);

// What is known of why all `suspects` are silent, to follow what was said of the one that is
// killed.
std::string Blame(const worker::Culprit& culprit, const std::vector<worker::Silence>& suspects) {
  std::set<int> in_order;
  for (const worker::Silence& one : suspects) {
    if (one.rank != culprit.rank) in_order.insert(one.rank);
  }
  std::vector<std::string> others;
  for (const int rank : in_order) others.push_back(absl::StrCat(rank));
  const std::string ranks =
      absl::StrCat(others.size() == 1 ? "rank " : "ranks ", base::ShortList(others));
  if (!culprit.doing.empty()) {
    return absl::StrCat("; it ", culprit.doing, " while ", ranks, " ",
                        others.size() == 1 ? "waits" : "wait");
  }
  if (culprit.known) return "";
  if (others.empty()) return "; it waits for other ranks, but for which is unknown";
  return absl::StrCat(", as did ", ranks, "; which of them is to blame is unknown");
}

}  // namespace

absl::StatusOr<std::unique_ptr<HangMonitor>> HangMonitor::Open(boost::asio::io_context& io,
                                                               const HangPolicy& policy,
                                                               const Place& place,
                                                               Callbacks callbacks) {
  std::string made;
  if (place.own_directory.empty() || !HoldsSocket(place.own_directory)) {
    absl::StatusOr<std::string> directory = MakeSocketDirectory(place.temp_dir);
    if (!directory.ok()) return directory.status();
    made = *std::move(directory);
  }
  const std::string path = (made.empty() ? place.own_directory : made) + kSocketName;
  std::unique_ptr<HangMonitor> monitor(
      new HangMonitor(io, policy, std::move(made), std::move(callbacks)));
  auto socket = worker::BeatSocket::Open(
      io, path,
      {.on_beat = [raw = monitor.get()](const worker::Beat& beat, pid_t) { raw->OnBeat(beat); },
       .on_warning =
           [raw = monitor.get()](const std::string& what) { raw->callbacks_.on_warning(what); }});
  if (!socket.ok()) return socket.status();
  monitor->socket_ = *std::move(socket);
  return monitor;
}

HangMonitor::HangMonitor(boost::asio::io_context& io, const HangPolicy& policy,
                         std::string directory, Callbacks callbacks)
    : io_(io),
      policy_(policy),
      directory_(std::move(directory)),
      callbacks_(std::move(callbacks)),
      watch_(WatchOptions(policy)),
      timer_(io),
      others_timer_(io) {}

HangMonitor::~HangMonitor() {
  Forget();
  socket_.reset();
  if (!directory_.empty()) rmdir(directory_.c_str());
}

void HangMonitor::BeginRound(worker::WorkerGroup& group, const std::string& directory, int nodes) {
  has_other_nodes_ = nodes > 1;
  group_ = &group;
  evidence_directory_ = directory;
  killed_.reset();
  std::vector<int> ranks;
  for (const worker::RunningWorker& worker : group.RunningWorkers()) ranks.push_back(worker.rank);
  watch_.Start(ranks, Clock::now());
  AwaitNext();
}

void HangMonitor::EndRound() {
  if (group_ != nullptr) ReportEvidenceAtOnce();
  Forget();
}

void HangMonitor::ReportEvidenceAtOnce() {
  if (evidence_ == nullptr) {
    Update();
    const std::vector<worker::Silence> nearly = watch_.NearlyOverdue(Clock::now());
    const auto suspects = watch_.Suspects();
    // Of a hang that was noticed there is evidence.
    const bool noticed = !suspects.has_value() || !suspects->empty();
    if (noticed || nearly.empty()) return;
    Collect(nearly);
  }
  const std::vector<worker::Evidence> found =
      std::exchange(evidence_, nullptr)->FinishNow("the workers were about to be stopped");
  for (const worker::Evidence& one : found) callbacks_.on_evidence(one);
}

void HangMonitor::Suspend() {
  suspended_ = true;
  timer_.cancel();
  timer_runs_ = false;
}

void HangMonitor::Resume() {
  if (!std::exchange(suspended_, false) || group_ == nullptr) return;
  watch_.StartAfresh(Clock::now());
  if (to_judge_) Judge();
  if (group_ != nullptr) AwaitNext();
}

void HangMonitor::Forget() {
  group_ = nullptr;
  others_until_.reset();
  others_timer_.cancel();
  timer_.cancel();
  timer_runs_ = false;
  evidence_.reset();
  to_judge_ = false;
  late_.clear();
}

void HangMonitor::OnBeat(const worker::Beat& beat) {
  if (group_ == nullptr) return;
  const bool had_beat = watch_.had_beat(beat.rank);
  watch_.OnBeat(beat.rank, beat.step, Clock::now());
  if (!had_beat && watch_.had_beat(beat.rank)) callbacks_.on_first_beat(beat.rank);
  callbacks_.on_beat(beat);
  if (!late_.empty()) TellLife();
  if (group_ != nullptr && !timer_runs_) AwaitNext();
}

// The time that is waited for is not moved with each beat; when it has come, it is asked again.
void HangMonitor::AwaitNext() {
  const auto next = watch_.NextDeadline();
  if (!next || suspended_) return;
  timer_runs_ = true;
  timer_.expires_at(*next);
  // The time may come while this is destroyed: then the handler is queued, and comes after.
  timer_.async_wait(lifetime_.Guard([this](const boost::system::error_code& error) {
    if (error || group_ == nullptr || suspended_ || Clock::now() < timer_.expiry()) return;
    timer_runs_ = false;
    Look();
  }));
}

void HangMonitor::Update() {
  socket_->Drain();
  const std::vector<worker::RunningWorker> running = group_->RunningWorkers();
  for (const int rank : watch_.ranks()) {
    const bool runs = std::any_of(running.begin(), running.end(),
                                  [&](const auto& worker) { return worker.rank == rank; });
    if (!runs) watch_.OnExited(rank);
    if (const auto at = group_->LastOutput(rank)) watch_.OnOutput(rank, *at);
  }
  TellLife();
}

void HangMonitor::TellLife() {
  for (auto at = late_.begin(); at != late_.end();) {
    const int rank = *at;
    const bool lives = !watch_.is_silent(rank);
    at = lives ? late_.erase(at) : std::next(at);
    if (lives) callbacks_.on_life(rank);
  }
}

void HangMonitor::LookAgain() {
  if (group_ != nullptr && !late_.empty()) Update();
}

void HangMonitor::Look() {
  Update();
  const std::vector<worker::Silence> late = watch_.Overdue(Clock::now());
  for (const worker::Silence& silence : late) {
    late_.insert(silence.rank);
    callbacks_.on_hang(silence.rank, worker::Describe(silence));
  }
  if (group_ == nullptr) return;
  if (to_judge_) {
    Judge();
  } else if (!late.empty() && evidence_ == nullptr) {
    Collect(late);
  }
  AwaitNext();
}

void HangMonitor::Collect(const std::vector<worker::Silence>& late) {
  const std::string where = callbacks_.where_ranks_are ? callbacks_.where_ranks_are() : "";
  std::vector<worker::EvidenceTarget> targets;
  for (const worker::RunningWorker& worker : group_->RunningWorkers()) {
    const auto silence = std::find_if(late.begin(), late.end(), [&](const worker::Silence& one) {
      return one.rank == worker.rank;
    });
    targets.push_back(
        {.rank = worker.rank,
         .pid = worker.pid,
         .why = silence == late.end() ? "ran beside a rank that hangs" : worker::Describe(*silence),
         .where = where});
  }
  worker::EvidenceOptions options{.directory = evidence_directory_,
                                  .on_command = [this](pid_t pid) { group_->ExcludeChild(pid); }};
  // The flag has been read so before.
  if (!policy_.stack_command.empty()) {
    options.command = worker::StackCommand::Parse(policy_.stack_command).value();
  }
  evidence_ = std::make_unique<worker::EvidenceRun>(
      io_, std::move(options), std::move(targets),
      [this](std::vector<worker::Evidence> evidence) { OnEvidence(std::move(evidence)); });
}

void HangMonitor::OnEvidence(std::vector<worker::Evidence> evidence) {
  evidence_.reset();
  activities_.clear();
  for (const worker::Evidence& one : evidence) {
    activities_.push_back(one.activity);
    callbacks_.on_evidence(one);
  }
  if (policy_.action == HangAction::kReport || group_ == nullptr) return;
  to_judge_ = true;
  Judge();
}

void HangMonitor::Judge() {
  if (suspended_) return;
  const bool all_are_silent = watch_.AllSilent().size() == group_->RunningWorkers().size();
  const bool others_may_come = has_other_nodes_ || !all_are_silent;
  if (others_until_.has_value() && Clock::now() < *others_until_ && others_may_come) return;
  Update();
  std::optional<std::vector<worker::Silence>> silent = watch_.Suspects();
  if (!silent.has_value()) return;
  const bool others_had_time = !others_may_come || others_until_.has_value();
  others_until_.reset();
  to_judge_ = false;
  if (silent->empty()) {
    callbacks_.on_warning("the ranks that gave no sign of life go on; none is killed");
    return;
  }
  worker::Culprit culprit = CulpritAmong(*silent);
  // The one that these wait for may have fallen silent later.
  if (!culprit.known) {
    silent = watch_.AllSilent();
    culprit = CulpritAmong(*silent);
  }
  if (culprit.only_waits && !others_had_time) return LetOthersGoFirst();
  Kill(*std::find_if(silent->begin(), silent->end(),
                     [&](const worker::Silence& one) { return one.rank == culprit.rank; }),
       culprit, *silent);
}

worker::Culprit HangMonitor::CulpritAmong(const std::vector<worker::Silence>& silent) const {
  std::vector<worker::HangSuspect> suspects;
  for (const worker::Silence& one : silent) {
    suspects.push_back({.rank = one.rank, .stopped = worker::AnyStopped(PidOf(one.rank))});
  }
  return worker::PickCulprit(suspects, callbacks_.flights(), activities_);
}

void HangMonitor::LetOthersGoFirst() {
  const auto time = std::min<std::chrono::milliseconds>(policy_.timeout, kTimeForOthers);
  callbacks_.on_warning(absl::StrCat(
      "the silent ranks of this node wait for others; ",
      has_other_nodes_ ? "other nodes have " : "the rank that they wait for has ",
      base::Seconds(time),
      has_other_nodes_ ? " to find the rank that they wait for" : " to fall silent as well"));
  to_judge_ = true;
  others_until_ = Clock::now() + time;
  others_timer_.expires_at(*others_until_);
  others_timer_.async_wait(lifetime_.Guard([this](const boost::system::error_code& error) {
    if (!error && to_judge_) Judge();
  }));
}

void HangMonitor::Kill(const worker::Silence& silence, const worker::Culprit& culprit,
                       const std::vector<worker::Silence>& suspects) {
  const pid_t pid = PidOf(silence.rank);
  if (pid == 0) return;
  killed_ = silence.rank;
  group_->KillFor(pid, SIGKILL,
                  absl::StrCat("it ", worker::Describe(silence), Blame(culprit, suspects)));
}

pid_t HangMonitor::PidOf(int rank) const {
  for (const worker::RunningWorker& worker : group_->RunningWorkers()) {
    if (worker.rank == rank) return worker.pid;
  }
  return 0;
}

}  // namespace muster::launcher
