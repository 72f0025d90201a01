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
constexpr Duration kSilentForLong = seconds(60);
constexpr std::uint64_t kIncarnationsPerStart = std::uint64_t{1} << 32;

}  // namespace

Daemon::Daemon(World world, Disk& disk, const Options& options)
    : world_(world), disk_(disk), options_(options) {
  clock_offset_ = world_.random.Between(seconds(0), seconds(1'000'000));
}

void Daemon::Start(Duration until_it_listens) {
  ++life_;
  process_ = std::make_shared<Process>(world_.scheduler, world_.random);
  const std::uint64_t start = options_.durable ? disk_.CountStart() : life_;
  coordinator_.emplace(Coordinator::Options{
      .first_incarnation =
          options_.mutations.reuses_incarnations ? 1 : start * kIncarnationsPerStart,
      .durable = options_.durable});
  gate_ = {};
  untold_ = 0;
  fronts_.clear();
  timer_due_.reset();
  commit_posted_ = false;
  full_ = false;
  changes_ = writing_ = {};
  world_.Log("daemon starts, life ", life_);
  Restore();
  listens_ = false;
  process_->After(until_it_listens, [this] {
    listens_ = true;
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
    if (attends) coordinator_->Disconnected(connection, "it does not answer", Now());
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
    coordinator_->Restore(*record, Now());
    const std::optional<JobRecord> restored = coordinator_->Record(run_id, Now());
    world_.checks.durability.OnRestored(job.record, restored);
    world_.checks.attendance.OnChange(run_id, restored, std::nullopt, world_.scheduler.now());
  }
  for (const auto& [run_id, entries] : disk_.entries()) {
    KeyValueStore* const store = coordinator_->FindStore(run_id);
    if (store == nullptr || options_.mutations.forgets_store) continue;
    for (const auto& [key, value] : entries) store->Set(key, value).IgnoreError();
  }
  Follow(std::nullopt);
}

void Daemon::Kill(bool power_loss) {
  if (process_ == nullptr) return;
  world_.Log("daemon dies", power_loss ? " with its host" : "");
  process_->Kill();
  process_.reset();
  coordinator_.reset();
  fronts_.clear();
  disk_.WriterDied();
  world_.network.ServerDied(power_loss);
  // A machine's monotonic clock starts anew with it.
  if (power_loss) clock_offset_ = world_.random.Between(seconds(0), seconds(1'000'000));
}

void Daemon::Halt(Duration duration) {
  // Leases of restored agents run from Restore, and a refused agent counts its own anew: between
  // the two no more time may pass than Coordinator::Options::restart_grace.
  if (process_ == nullptr || process_->stopped() || !listens_) return;
  process_->Stop();
  world_.scheduler.After(duration, [weak = std::weak_ptr<Process>(process_)] {
    if (const auto process = weak.lock()) process->Continue();
  });
}

void Daemon::CloseAll() {
  coordinator_->Close("an operator said so", Now());
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
    if (!attends) return;
    coordinator_->Disconnected(connection, "its connection ended", Now());
    Follow(std::nullopt);
  });
}

void Daemon::Take(ConnectionId connection, const Upward& message, TimePoint sent) {
  const auto found = fronts_.find(connection);
  if (found == fronts_.end()) return;  // it has said goodbye
  found->second.last_heard = world_.scheduler.now();
  if (const auto* request = std::get_if<StoreRequest>(&message)) return Serve(connection, *request);
  if (const auto* dead = std::get_if<AgentIsDead>(&message)) {
    world_.Log(dead->session, " is said to be dead");
    coordinator_->AgentDied(dead->session, Now());
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
  const std::optional<JobRecord> before = coordinator_->Record(run_id, Now());
  HandOver(connection, front, event);
  const std::set<std::string> told_of = Follow(sent);
  const std::optional<JobRecord> after = coordinator_->Record(run_id, Now());
  if (after == before) return;
  if (before && about && RoundId{before->incarnation, before->round.number} != *about) {
    world_.checks.violations.Add(
        Check::kStale, absl::StrCat("job ", run_id, ", round ", before->round.number,
                                    ": a report on round ", about->number, " has changed it"));
  } else if (!told_of.contains(run_id)) {
    world_.checks.violations.Add(Check::kDurable,
                                 absl::StrCat("job ", run_id, " has changed, and nothing says so"));
  }
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
  coordinator_->Hear(agent, event, Now());
  if (!std::holds_alternative<Goodbye>(event)) return;
  fronts_.erase(agent);
  world_.network.CloseByServer(agent);
}

void Daemon::Serve(ConnectionId connection, const StoreRequest& request) {
  StoreAnswer answer{.number = request.number};
  KeyValueStore* const store = coordinator_->FindStore(request.run_id);
  const bool writes = request.operation != StoreOperation::kGet;
  const bool refused = full_ && writes;
  if (store != nullptr && !refused) {
    answer = Do(request, *store);
    answer.incarnation = coordinator_->Record(request.run_id, Now())->incarnation;
    std::vector<std::string> keys = store->TakeChangedKeys();
    if (!keys.empty() && options_.durable) {
      changes_.keys[request.run_id].insert(keys.begin(), keys.end());
      gate_.Change();
    }
  }
  StoreTelling telling{connection, answer, request, ""};
  const std::string* const value = answer.done ? store->Get(request.key) : nullptr;
  if (value != nullptr) telling.value = *value;
  Put(std::move(telling));
  Follow(std::nullopt);
}

StoreAnswer Daemon::Do(const StoreRequest& request, KeyValueStore& store) {
  StoreAnswer answer{.number = request.number, .done = true};
  if (options_.durable) store.TrackChanges();
  switch (request.operation) {
    case StoreOperation::kSet:
      answer.done = store.Set(request.key, request.value).ok();
      break;
    case StoreOperation::kAdd:
      if (const auto sum = store.Add(request.key, 1); sum.ok()) answer.value = absl::StrCat(*sum);
      break;
    case StoreOperation::kCompareSet:
      if (const auto outcome = store.CompareSet(request.key, request.expected, request.value);
          outcome.ok()) {
        answer.stored = outcome->stored;
        answer.value = outcome->value;
      }
      break;
    case StoreOperation::kAppend:
      answer.done = store.Append(request.key, request.value).ok();
      break;
    case StoreOperation::kGet:
      if (const std::string* value = store.Get(request.key)) answer.value = *value;
      break;
  }
  return answer;
}

std::set<std::string> Daemon::Follow(std::optional<TimePoint> sent) {
  Outbox outbox = coordinator_->TakeOutbox();
  std::set<std::string> changed;
  for (const Transition& transition : outbox.transitions) {
    world_.Log(transition.run_id, " ", transition.round, " ", transition.node, ": ",
               transition.text);
    changed.insert(transition.run_id);
  }
  changed.insert(outbox.forgotten_jobs.begin(), outbox.forgotten_jobs.end());
  for (const std::string& run_id : changed) {
    world_.checks.attendance.OnChange(run_id, coordinator_->Record(run_id, Now()), sent,
                                      world_.scheduler.now());
  }
  if (options_.durable) {
    for (const Transition& transition : outbox.transitions) changes_.jobs.insert(transition.run_id);
    for (const std::string& run_id : outbox.forgotten_jobs) {
      changes_.forgotten.insert(run_id);
      changes_.jobs.erase(run_id);
      changes_.keys.erase(run_id);
    }
    if (!changed.empty()) gate_.Change();
  }
  for (const std::string& run_id : outbox.forgotten_jobs) {
    world_.incidents.Count(Incident::kJobForgotten);
    world_.Log(run_id, " is forgotten");
  }
  for (Outgoing& outgoing : outbox.directives) {
    // A slow disk must not cost anybody its lease.
    if (std::holds_alternative<Heard>(outgoing.directive)) {
      TellAgent(outgoing);
    } else {
      Put(std::move(outgoing));
    }
  }
  if (untold_ > kMostUntold) {
    world_.checks.violations.Add(Check::kBounds, absl::StrCat(untold_, " answers wait"));
  }
  Deliver();
  CommitSoon();
  ArmTimer();
  return changed;
}

void Daemon::Put(Telling telling) {
  if (options_.mutations.answers_before_commit) return Tell(telling);
  ++untold_;
  gate_.Put(std::move(telling));
}

void Daemon::Deliver() {
  while (const std::optional<Telling> telling = gate_.Take()) {
    --untold_;
    Tell(*telling);
  }
}

void Daemon::Tell(const Telling& telling) {
  if (const auto* outgoing = std::get_if<Outgoing>(&telling)) return TellAgent(*outgoing);
  TellStoreClient(std::get<StoreTelling>(telling));
}

void Daemon::TellStoreClient(const StoreTelling& telling) {
  if (options_.durable && telling.answer.done) {
    world_.checks.durability.OnAcknowledged(telling.request.run_id, telling.answer.incarnation,
                                            coordinator_->Record(telling.request.run_id, Now()),
                                            telling.request.key, telling.value);
  }
  world_.network.Tell(telling.connection, telling.answer);
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
                                      coordinator_->Record(found->second.run_id, Now()),
                                      outgoing.directive);
    }
  }
  world_.network.Tell(outgoing.to, outgoing.directive);
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
  if (!gate_.NeedsCommit() || std::exchange(commit_posted_, true)) return;
  process_->After(Duration::zero(), [this] {
    commit_posted_ = false;
    Commit();
  });
}

void Daemon::Commit() {
  if (gate_.NeedsCommit()) gate_.Begin();
  disk_.Write(TakeBatch(), [this, process = std::weak_ptr<Process>(process_)](DiskOutcome outcome) {
    const auto alive = process.lock();
    if (alive == nullptr) return;
    alive->Do([this, outcome] {
      if (outcome == DiskOutcome::kBroken) {
        // What is on the disk is not known: not another word.
        world_.scheduler.After(Duration::zero(), [this, life = life_] {
          if (life != life_ || process_ == nullptr) return;
          Kill(false);
          on_ended();
        });
        process_->Stop();
        return;
      }
      full_ = outcome == DiskOutcome::kFull;
      if (full_) {
        KeepBatch();
        return process_->After(kTryAgainAfter, [this] { Commit(); });
      }
      gate_.Committed();
      Deliver();
      CommitSoon();
    });
  });
}

DiskBatch Daemon::TakeBatch() {
  writing_ = std::exchange(changes_, {});
  DiskBatch batch;
  for (const std::string& run_id : writing_.forgotten)
    batch.jobs.emplace_back(run_id, std::nullopt);
  for (const std::string& run_id : writing_.jobs) {
    if (std::optional<JobRecord> record = coordinator_->Record(run_id, Now())) {
      std::string bytes = ToBytes(*record);
      batch.jobs.emplace_back(run_id, JobOnDisk{std::move(bytes), *std::move(record)});
    }
  }
  for (const auto& [run_id, keys] : writing_.keys) {
    const KeyValueStore* const store = coordinator_->FindStore(run_id);
    if (store == nullptr) continue;
    for (const std::string& key : keys) {
      const std::string* const value = store->Get(key);
      batch.entries.push_back(
          {run_id, key, value == nullptr ? std::nullopt : std::optional(*value)});
    }
  }
  return batch;
}

void Daemon::KeepBatch() {
  for (const std::string& run_id : writing_.jobs) {
    if (!changes_.forgotten.contains(run_id)) changes_.jobs.insert(run_id);
  }
  for (const auto& [run_id, keys] : writing_.keys) {
    if (!changes_.forgotten.contains(run_id))
      changes_.keys[run_id].insert(keys.begin(), keys.end());
  }
  changes_.forgotten.insert(writing_.forgotten.begin(), writing_.forgotten.end());
}

void Daemon::ArmTimer() {
  const std::optional<TimePoint> due = coordinator_->NextDeadline();
  // A timer that is early looks again; only an earlier time needs another.
  if (!due || (timer_due_ && *timer_due_ <= *due)) return;
  timer_due_ = due;
  process_->After(std::max(*due - Now(), Duration::zero()), [this, due = *due] {
    if (timer_due_ != due) return;
    timer_due_.reset();
    coordinator_->Tick(Now());
    Follow(std::nullopt);
  });
}

}  // namespace muster::rendezvous
