#include "test/rendezvous/cluster/daemon.h"

#include <algorithm>

#include "rendezvous/wire/record_wire.h"
#include "test/rendezvous/support/directive_text.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kTryAgainAfter = seconds(1);
// Sixteen agents and their store clients that try again and again while the daemon stands still.
constexpr std::size_t kMostFronts = 4'000;
constexpr std::size_t kMostUntold = 5'000;
// For how long a keeper tells that a daemon is dead which remembers nothing.
constexpr Duration kLastWord = seconds(10);
constexpr Duration kSilentForLong = seconds(60);
constexpr std::uint64_t kIncarnationsPerStart = std::uint64_t{1} << 32;

}  // namespace

Daemon::Daemon(World world, Disk& disk, const Options& options)
    : world_(world), disk_(disk), options_(options) {
  clock_offset_ = world_.random.Between(seconds(0), seconds(1'000'000));
  world_.network.on_knock = [this] { return AnswerKnock(); };
}

std::optional<KnockWord> Daemon::AnswerKnock() const {
  if (!keeper_since_) return std::nullopt;
  if (options_.durable) return KnockWord::kPaused;
  // Its last word: then the keeper leaves, too.
  if (world_.scheduler.now() < *keeper_since_ + kLastWord) return KnockWord::kGone;
  return std::nullopt;
}

void Daemon::Start(Duration until_it_listens) {
  ++life_;
  process_ = std::make_shared<Process>(world_.scheduler, world_.random);
  const std::uint64_t start = options_.durable ? disk_.CountStart() : life_;
  core_.emplace(Coordinator::Options{.first_incarnation = options_.mutations.reuses_incarnations
                                                              ? 1
                                                              : start * kIncarnationsPerStart,
                                     .durable = options_.durable});
  fronts_.clear();
  calls_.clear();
  cancelled_early_.clear();
  timer_due_.reset();
  commits_ = false;
  world_.Log("daemon starts, life ", life_);
  Restore();
  listens_ = false;
  process_->After(until_it_listens, [this] {
    listens_ = true;
    // It has made room for the daemon.
    keeper_since_.reset();
    world_.network.Listen(this);
  });
  Sweep();
}

void Daemon::Sweep() {
  std::vector<ConnectionId> dead;
  for (const auto& [connection, front] : fronts_) {
    if (front.last_heard + kSilentForLong < world_.scheduler.now()) dead.push_back(connection);
  }
  for (const ConnectionId connection : dead) {
    const bool attends = fronts_.at(connection).attends;
    fronts_.erase(connection);
    world_.network.CloseByServer(connection);
    if (attends) core_->Disconnected(connection, "it does not answer", Now());
  }
  if (!dead.empty()) Follow(std::nullopt);
  process_->After(kSilentForLong / 2, [this] { Sweep(); });
}

void Daemon::Restore() {
  world_.checks.attendance.OnRestart();
  for (const auto& [run_id, job] : disk_.jobs()) {
    const absl::StatusOr<JobRecord> record = RecordFromBytes(job.bytes);
    if (!record.ok()) {
      world_.checks.violations.Add(Check::kRestored, std::string(record.status().message()));
      continue;
    }
    world_.incidents.Count(Incident::kRestored);
    if (!core_->Restore(*record, Now())) {
      world_.checks.violations.Add(Check::kRestored, run_id + " contradicts what was restored");
    }
    const std::optional<JobRecord> restored = RecordOf(run_id);
    world_.checks.durability.OnRestored(job.record, restored);
    world_.checks.attendance.OnChange(run_id, restored, std::nullopt, world_.scheduler.now());
  }
  for (const auto& [run_id, entries] : disk_.entries()) {
    if (options_.mutations.forgets_store) continue;
    for (const auto& [key, value] : entries) core_->RestoreEntry(run_id, key, value);
  }
  Follow(std::nullopt);
}

void Daemon::Kill(bool power_loss, bool keeper) {
  if (process_ == nullptr) return;
  world_.Log("daemon dies", power_loss ? " with its host" : "");
  process_->Kill();
  process_.reset();
  core_.reset();
  fronts_.clear();
  disk_.WriterDied();
  world_.network.ServerDied(power_loss);
  keeper_since_.reset();
  if (keeper && !power_loss) keeper_since_ = world_.scheduler.now();
  // A machine's monotonic clock starts anew with it.
  if (power_loss) clock_offset_ = world_.random.Between(seconds(0), seconds(1'000'000));
}

void Daemon::Halt(Duration duration) {
  // Leases of restored agents run from Restore, and an agent whose knock is answered counts its own
  // anew: between the two no more time may pass than Coordinator::Options::restart_grace.
  if (process_ == nullptr || process_->stopped() || !listens_) return;
  process_->Stop();
  world_.scheduler.After(duration, [weak = std::weak_ptr<Process>(process_)] {
    if (const auto process = weak.lock()) process->Continue();
  });
}

void Daemon::Continue() {
  if (process_ != nullptr) process_->Continue();
}

void Daemon::CloseAll() {
  core_->Close("an operator said so", Now());
  Follow(std::nullopt);
}

void Daemon::OnAccepted(ConnectionId connection) {
  process_->Do([this, connection] {
    fronts_[connection].last_heard = world_.scheduler.now();
    if (fronts_.size() > kMostFronts) {
      world_.checks.violations.Add(Check::kBounds,
                                   absl::StrCat(fronts_.size(), " connections are open"));
    }
  });
}

void Daemon::OnMessage(ConnectionId connection, Upward message, TimePoint sent) {
  process_->Do(
      [this, connection, message = std::move(message), sent] { Take(connection, message, sent); });
}

void Daemon::OnClosed(ConnectionId connection) {
  process_->Do([this, connection] {
    const auto found = fronts_.find(connection);
    if (found == fronts_.end()) return;
    const bool attends = found->second.attends;
    fronts_.erase(found);
    std::vector<CallId> cancelled;
    for (const auto& [id, call] : calls_) {
      if (call.connection == connection) cancelled.push_back(id);
    }
    for (const CallId id : cancelled) {
      core_->Cancel(id);
      calls_.erase(id);
    }
    if (!attends) return;
    core_->Disconnected(connection, "its connection ended", Now());
    Follow(std::nullopt);
  });
}

void Daemon::Take(ConnectionId connection, const Upward& message, TimePoint sent) {
  const auto found = fronts_.find(connection);
  if (found == fronts_.end()) return;  // it said goodbye
  found->second.last_heard = world_.scheduler.now();
  if (const auto* request = std::get_if<StoreRequest>(&message)) return Serve(connection, *request);
  if (const auto* cancel = std::get_if<StoreCancel>(&message)) {
    return Cancel(connection, cancel->number);
  }
  if (const auto* dead = std::get_if<AgentIsDead>(&message)) {
    world_.Log(dead->session, " is said to be dead");
    core_->AgentDied(dead->session, Now());
    Follow(sent);
    return;
  }

  Front& front = found->second;
  const Event& event = std::get<Event>(message);
  if (const auto* join = std::get_if<JoinRequest>(&event)) {
    joins_[join->session] = *join;
    Know(connection, *join);
  } else if (const auto* resume = std::get_if<Resume>(&event)) {
    Know(connection, joins_[resume->session]);
  }
  world_.checks.rounds.OnHeard(front.node_id, world_.scheduler.now() + front.lease);
  if (std::holds_alternative<KeepAlive>(event)) {
    HandOver(connection, front, event);
    Follow(sent);
    return;
  }
  // What is about another round than the current one must leave no trace, and nothing may change
  // that is not said to have changed.
  std::optional<RoundId> about;
  if (const auto* started = std::get_if<WorkersStarted>(&event)) about = started->round;
  if (const auto* exited = std::get_if<WorkersExited>(&event)) about = exited->round;
  const std::string run_id = front.run_id;
  const std::optional<JobRecord> before = RecordOf(run_id);
  HandOver(connection, front, event);
  const Changes& changed = core_->delivery().changed();
  const bool told_of = changed.jobs.contains(run_id) || changed.forgotten.contains(run_id);
  Follow(sent);
  const std::optional<JobRecord> after = RecordOf(run_id);
  if (after == before) return;
  if (before && about && RoundId{before->incarnation, before->round.number} != *about) {
    world_.checks.violations.Add(
        Check::kStale, absl::StrCat("job ", run_id, ", round ", before->round.number,
                                    ": a report on round ", about->number, " has changed it"));
  } else if (options_.durable && !told_of) {
    world_.checks.violations.Add(Check::kDurable,
                                 absl::StrCat("job ", run_id, " has changed, and nothing says so"));
  }
}

std::optional<JobRecord> Daemon::RecordOf(const std::string& run_id) const {
  std::optional<JobRecord> record = core_->coordinator().Record(run_id, Now());
  if (record && record->attendees.empty() && record->verdict) record.reset();
  return record;
}

void Daemon::Know(ConnectionId connection, const JoinRequest& join) {
  Front& front = fronts_.at(connection);
  ConnectionId& newest = newest_[join.session];
  newest = std::max(newest, connection);
  front.session = join.session;
  front.run_id = join.run_id;
  front.node_id = join.node.node_id;
  front.lease = join.settings.lease;
}

void Daemon::HandOver(AgentId agent, Front& front, const Event& event) {
  if (!std::holds_alternative<KeepAlive>(event)) {
    world_.Log("a", agent, " ", front.session, " says ", event.index());
  }
  const bool opens =
      std::holds_alternative<JoinRequest>(event) || std::holds_alternative<Resume>(event);
  front.attends = front.attends || opens;
  core_->Hear(agent, event, Now());
  if (!std::holds_alternative<Goodbye>(event)) return;
  fronts_.erase(agent);
  world_.network.CloseByServer(agent);
}

void Daemon::Serve(ConnectionId connection, const StoreRequest& request) {
  const CallId id = ++last_call_;
  calls_[id] = {connection, request, {.number = request.number}, ""};
  const bool waits = request.operation == StoreOperation::kWait;
  StoreCall call{.run_id = request.run_id,
                 .body = [this, id](KeyValueStore& store) { return Do(calls_.at(id), store); },
                 .writes = !waits && request.operation != StoreOperation::kGet};
  if (waits) {
    call.wait = {.keys = {request.key}};
    if (request.wait_for) call.wait->deadline = Now() + *request.wait_for;
  }
  core_->Call(id, call);
  if (cancelled_early_.erase({connection, request.number}) > 0) {
    world_.incidents.Count(Incident::kCancelledBeforeItCame);
    core_->Cancel(id);
    calls_.erase(id);
  }
  Follow(std::nullopt);
}

void Daemon::Cancel(ConnectionId connection, std::uint64_t number) {
  const auto found = std::find_if(calls_.begin(), calls_.end(), [&](const auto& call) {
    return call.second.connection == connection && call.second.request.number == number;
  });
  if (found == calls_.end()) {
    // It has been answered, or is on its way.
    cancelled_early_.emplace(connection, number);
    return;
  }
  const std::size_t waiting = core_->waiting_calls();
  core_->Cancel(found->first);
  const bool waited = core_->waiting_calls() < waiting;
  world_.incidents.Count(waited ? Incident::kWaitCancelled : Incident::kHeldCallCancelled);
  calls_.erase(found);
  Follow(std::nullopt);
}

absl::Status Daemon::Do(OpenCall& call, KeyValueStore& store) {
  const StoreRequest& request = call.request;
  StoreReply& reply = call.reply;
  absl::Status status;
  switch (request.operation) {
    case StoreOperation::kSet:
      status = store.Set(request.key, request.value);
      break;
    case StoreOperation::kAdd:
      if (const auto sum = store.Add(request.key, 1); sum.ok()) reply.value = absl::StrCat(*sum);
      break;
    case StoreOperation::kCompareSet:
      if (const auto outcome = store.CompareSet(request.key, request.expected, request.value);
          outcome.ok()) {
        reply.stored = outcome->stored;
        reply.value = outcome->value;
      }
      break;
    case StoreOperation::kAppend:
      status = store.Append(request.key, request.value);
      break;
    case StoreOperation::kGet:
    case StoreOperation::kWait:
      if (const std::string* value = store.Get(request.key)) reply.value = *value;
      break;
  }
  reply.incarnation = RecordOf(request.run_id)->incarnation;
  if (const std::string* const value = store.Get(request.key)) call.value = *value;
  return status;
}

void Daemon::Follow(std::optional<TimePoint> sent) {
  std::set<std::string> changed;
  for (const Transition& transition : core_->TakeLog()) {
    world_.Log(transition.run_id, " ", transition.round, " ", transition.node, ": ",
               transition.text);
    changed.insert(transition.run_id);
  }
  for (const std::string& run_id : changed) {
    const std::optional<JobRecord> all = core_->coordinator().Record(run_id, Now());
    if (all) world_.checks.durability.OnDecided(*all);
    const std::optional<JobRecord> record = RecordOf(run_id);
    world_.checks.attendance.OnChange(run_id, record, sent, world_.scheduler.now());
    if (record) continue;
    if (all) world_.checks.rounds.OnForgotten(run_id, all->incarnation);
    world_.incidents.Count(Incident::kJobForgotten);
    world_.Log(run_id, " is forgotten");
  }
  if (options_.mutations.answers_before_commit && core_->NeedsCommit()) {
    core_->BeginCommit(Now());
    core_->Committed();
  }
  while (const std::optional<Telling> telling = core_->NextTelling()) Tell(*telling);
  if (core_->delivery().untold() > kMostUntold) {
    world_.checks.violations.Add(Check::kBounds,
                                 absl::StrCat(core_->delivery().untold(), " answers wait"));
  }
  CommitSoon();
  ArmTimer();
}

void Daemon::Tell(const Telling& telling) {
  if (const auto* outgoing = std::get_if<Outgoing>(&telling)) return TellAgent(*outgoing);
  TellStoreClient(std::get<StoreAnswer>(telling));
}

void Daemon::TellStoreClient(const StoreAnswer& answer) {
  const auto found = calls_.extract(answer.call);
  if (found.empty()) return;  // cancelled
  OpenCall& call = found.mapped();
  call.reply.done = answer.status.ok();
  call.reply.unknown = absl::IsUnavailable(answer.status);
  if (options_.durable && call.reply.done) {
    const StoreRequest& request = call.request;
    world_.checks.durability.OnAcknowledged(request.run_id, call.reply.incarnation,
                                            RecordOf(request.run_id), request.key, call.value);
  }
  world_.network.Tell(call.connection, call.reply);
}

void Daemon::TellAgent(const Outgoing& outgoing) {
  const auto found = fronts_.find(outgoing.to);
  if (found == fronts_.end()) return;
  const bool heard = std::holds_alternative<Heard>(outgoing.directive);
  if (!heard) {
    world_.Log("a", outgoing.to, " <- ", DirectiveText(outgoing.directive));
    // Who came over another connection meanwhile hears there what counts.
    const bool is_old = newest_[found->second.session] != outgoing.to;
    if (options_.durable && !(is_old && std::holds_alternative<Evicted>(outgoing.directive))) {
      world_.checks.durability.OnTold(found->second.run_id, found->second.session,
                                      RecordOf(found->second.run_id), outgoing.directive);
    }
  }
  Directive directive = outgoing.directive;
  // Only that there is one counts here: nobody forges answers.
  if (auto* welcome = std::get_if<Welcome>(&directive)) welcome->knock_secret = "secret";
  world_.network.Tell(outgoing.to, std::move(directive));
  if (std::holds_alternative<Fenced>(outgoing.directive)) {
    world_.incidents.Count(Incident::kFencedReport);
  }
  // The last that an agent hears over a connection.
  if (!std::holds_alternative<Refused>(outgoing.directive)) return;
  world_.incidents.Count(Incident::kRefused);
  fronts_.erase(found);
  world_.network.CloseByServer(outgoing.to);
}

// After what else is due in this turn of the loop, so that one commit holds it all.
void Daemon::CommitSoon() {
  if (!core_->NeedsCommit() || std::exchange(commits_, true)) return;
  process_->After(Duration::zero(), [this] { Commit(); });
}

void Daemon::Commit() {
  DiskBatch bytes;
  Batch batch = core_->BeginCommit(Now());
  for (Batch::Job& job : batch.jobs) {
    std::optional<JobOnDisk> on_disk;
    if (job.record) on_disk = JobOnDisk{ToBytes(*job.record), *job.record};
    bytes.jobs.emplace_back(std::move(job.run_id), std::move(on_disk));
  }
  for (Batch::Entry& entry : batch.entries) {
    bytes.entries.push_back(
        {std::move(entry.run_id), std::move(entry.key), std::move(entry.value)});
  }
  disk_.Write(std::move(bytes),
              [this, process = std::weak_ptr<Process>(process_)](DiskOutcome outcome) {
                const auto alive = process.lock();
                if (alive == nullptr) return;
                alive->Do([this, outcome] {
                  if (outcome == DiskOutcome::kBroken) {
                    // What is on the disk is not known: not another word.
                    world_.scheduler.After(Duration::zero(), [this, life = life_] {
                      if (life != life_ || process_ == nullptr) return;
                      Kill(false, true);
                      on_ended();
                    });
                    process_->Stop();
                    return;
                  }
                  if (outcome == DiskOutcome::kFull) {
                    core_->DiskFull();
                    Follow(std::nullopt);
                    return process_->After(kTryAgainAfter, [this] { Commit(); });
                  }
                  core_->Committed();
                  commits_ = false;
                  Follow(std::nullopt);
                });
              });
}

void Daemon::ArmTimer() {
  const std::optional<TimePoint> due = core_->NextDeadline();
  // A timer that is early looks again; only an earlier time needs another.
  if (!due || (timer_due_ && *timer_due_ <= *due)) return;
  timer_due_ = due;
  process_->After(std::max(*due - Now(), Duration::zero()), [this, due = *due] {
    if (timer_due_ != due) return;
    timer_due_.reset();
    core_->Tick(Now());
    Follow(std::nullopt);
  });
}

}  // namespace muster::rendezvous
