#include "test/rendezvous/cluster/service.h"

#include <algorithm>
#include <set>
#include <vector>

#include "rendezvous/wire/wire.h"
#include "test/rendezvous/support/directive_text.h"

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;

constexpr Duration kTryAgainAfter = seconds(1);
// Sixteen agents and their store clients that try again and again while the daemon stands still.
constexpr std::size_t kMostFronts = 4'000;
constexpr std::size_t kMostUntold = 5'000;
constexpr Duration kSilentForLong = seconds(60);

}  // namespace

Service::Service(World world, std::shared_ptr<Process> process, const SimClock& clock,
                 KnownSessions& sessions, const Options& options, Owner owner)
    : world_(world),
      process_(std::move(process)),
      clock_(clock),
      sessions_(sessions),
      options_(options),
      owner_(std::move(owner)),
      core_(options_.core),
      store_(world, clock, core_) {}

void Service::Restore(const JournalContents& contents, const Disk& written) {
  world_.checks.agent_session.OnRestart();
  world_.checks.jobs.OnRestart();
  for (const auto& [run_id, bytes] : contents.jobs) {
    const absl::StatusOr<JobRecord> record = RecordFromBytes(bytes);
    const auto job = written.jobs().find(run_id);
    if (!record.ok() || job == written.jobs().end()) {
      world_.checks.violations.Add(Check::kRestored, record.ok()
                                                         ? run_id + " was never written"
                                                         : std::string(record.status().message()));
      continue;
    }
    world_.incidents.Count(Incident::kRestored);
    if (!core_.Restore(*record, Now())) {
      world_.checks.violations.Add(Check::kRestored, run_id + " contradicts what was restored");
    }
    const std::optional<JobRecord> restored = RecordOf(run_id);
    world_.checks.durability.OnRestored(job->second.record, restored);
    world_.checks.agent_session.OnChange(run_id, restored, std::nullopt, world_.scheduler.now());
    world_.checks.jobs.OnChange(run_id, restored);
  }
  for (const JournalBatch::Entry& entry : contents.entries) {
    if (options_.mutations.forgets_store || !entry.value) continue;
    core_.RestoreEntry(entry.run_id, entry.key, *entry.value);
  }
  Follow(std::nullopt);
  process_->After(kSilentForLong / 2, [this] { Sweep(); });
}

void Service::BeginToServe() {
  core_.BeginToServe(Now());
  Follow(std::nullopt);
}

void Service::Sweep() {
  process_->After(kSilentForLong / 2, [this] { Sweep(); });
  if (frozen_) return;
  std::vector<ConnectionId> dead;
  for (const auto& [connection, front] : fronts_) {
    if (front.last_heard + kSilentForLong < world_.scheduler.now()) dead.push_back(connection);
  }
  for (const ConnectionId connection : dead) {
    const bool attends = fronts_.at(connection).attends;
    fronts_.erase(connection);
    world_.network.CloseByServer(connection);
    if (attends) core_.Disconnected(connection, "it does not answer", Now());
  }
  if (!dead.empty()) Follow(std::nullopt);
  for (const JobSnapshot& job : core_.coordinator().List(Now())) {
    const std::optional<JobRecord> record = RecordOf(job.run_id);
    if (record) world_.checks.jobs.OnDescribed(*record, job);
  }
}

void Service::OnAccepted(ConnectionId connection) {
  process_->Do([this, connection] {
    fronts_[connection].last_heard = world_.scheduler.now();
    if (fronts_.size() > kMostFronts) {
      world_.checks.violations.Add(Check::kBounds,
                                   absl::StrCat(fronts_.size(), " connections are open"));
    }
  });
}

void Service::OnMessage(ConnectionId connection, Upward message, TimePoint sent) {
  process_->Do(
      [this, connection, message = std::move(message), sent] { Take(connection, message, sent); });
}

void Service::OnClosed(ConnectionId connection) {
  process_->Do([this, connection] {
    const auto found = fronts_.find(connection);
    if (found == fronts_.end()) return;
    const bool attends = found->second.attends;
    fronts_.erase(found);
    store_.Closed(connection);
    if (!attends || frozen_) return;
    core_.Disconnected(connection, "its connection ended", Now());
    Follow(std::nullopt);
  });
}

void Service::Take(ConnectionId connection, const Upward& message, TimePoint sent) {
  const auto found = fronts_.find(connection);
  if (found == fronts_.end()) return;  // it left
  found->second.last_heard = world_.scheduler.now();
  if (frozen_) return;
  if (const auto* request = std::get_if<StoreRequest>(&message)) {
    store_.Serve(connection, *request);
    return Follow(std::nullopt);
  }
  if (const auto* cancel = std::get_if<StoreCancel>(&message)) {
    store_.Cancel(connection, cancel->number);
    return Follow(std::nullopt);
  }
  if (const auto* dead = std::get_if<AgentIsDead>(&message)) {
    world_.Log(dead->session, " is said to be dead");
    core_.AgentDied(dead->session, Now());
    Follow(sent);
    return;
  }

  Front& front = found->second;
  const Event& event = std::get<Event>(message);
  if (const auto* join = std::get_if<JoinRequest>(&event)) {
    sessions_.joins[join->session] = *join;
    Know(connection, *join);
  } else if (const auto* resume = std::get_if<Resume>(&event)) {
    Know(connection, sessions_.joins[resume->session]);
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
  const SessionToken session = front.session;
  const std::optional<JobRecord> before = RecordOf(run_id);
  HandOver(connection, front, event);
  const Changes& changed = core_.durable_outbox().changed();
  const bool told_of = changed.jobs.contains(run_id) || changed.forgotten.contains(run_id);
  Follow(sent);
  const std::optional<JobRecord> after = RecordOf(run_id);
  if (before && sessions_.newest[session] == connection) {
    world_.checks.jobs.OnHeard(session, event, *before, after);
  }
  if (after == before) return;
  if (before && about && RoundId{before->incarnation, before->round.number} != *about) {
    world_.checks.violations.Add(
        Check::kStale, absl::StrCat("job ", run_id, ", round ", before->round.number,
                                    ": a report on round ", about->number, " has changed it"));
  } else if (core_.durable_outbox().journaled() && !told_of) {
    world_.checks.violations.Add(Check::kDurable,
                                 absl::StrCat("job ", run_id, " has changed, and nothing says so"));
  }
}

std::optional<JobRecord> Service::RecordOf(const std::string& run_id) const {
  std::optional<JobRecord> record = core_.coordinator().Record(run_id, Now());
  if (record && record->attendees.empty() && record->verdict) record.reset();
  return record;
}

void Service::Know(ConnectionId connection, const JoinRequest& join) {
  Front& front = fronts_.at(connection);
  ConnectionId& newest = sessions_.newest[join.session];
  newest = std::max(newest, connection);
  front.session = join.session;
  front.run_id = join.run_id;
  front.node_id = join.node.node_id;
  front.lease = join.settings.lease;
}

void Service::HandOver(AgentId agent, Front& front, const Event& event) {
  if (!std::holds_alternative<KeepAlive>(event)) {
    world_.Log("a", agent, " ", front.session, " says ", event.index());
  }
  const bool opens =
      std::holds_alternative<JoinRequest>(event) || std::holds_alternative<Resume>(event);
  front.attends = front.attends || opens;
  core_.Hear(agent, event, Now());
  if (!std::holds_alternative<Goodbye>(event)) return;
  fronts_.erase(agent);
  world_.network.CloseByServer(agent);
}

void Service::Follow(std::optional<TimePoint> sent) {
  if (owner_.leads && !owner_.leads() && !options_.mutations.speaks_when_it_does_not_lead) {
    if (!std::exchange(frozen_, true)) world_.incidents.Count(Incident::kFrozen);
  }
  if (frozen_) return;
  std::set<std::string> changed;
  for (const Transition& transition : core_.TakeLog()) {
    world_.Log(transition.run_id, " ", transition.round, " ", transition.node, ": ",
               transition.text);
    changed.insert(transition.run_id);
  }
  for (const std::string& run_id : changed) {
    const std::optional<JobRecord> all = core_.coordinator().Record(run_id, Now());
    if (all) world_.checks.durability.OnDecided(*all);
    const std::optional<JobRecord> record = RecordOf(run_id);
    world_.checks.agent_session.OnChange(run_id, record, sent, world_.scheduler.now());
    world_.checks.jobs.OnChange(run_id, record);
    if (record) continue;
    if (all) world_.checks.rounds.OnForgotten(run_id, all->incarnation);
    world_.incidents.Count(Incident::kJobForgotten);
    world_.Log(run_id, " is forgotten");
  }
  if (options_.mutations.answers_before_commit && core_.NeedsCommit()) {
    core_.BeginCommit(Now());
    core_.Committed();
  }
  while (const std::optional<OutboundMessage> message = core_.NextMessage()) Tell(*message);
  if (core_.durable_outbox().untold() > kMostUntold) {
    world_.checks.violations.Add(Check::kBounds,
                                 absl::StrCat(core_.durable_outbox().untold(), " answers wait"));
  }
  CommitSoon();
  ArmTimer();
}

void Service::Tell(const OutboundMessage& message) {
  if (owner_.on_word) owner_.on_word();
  if (const auto* outgoing = std::get_if<Outgoing>(&message)) return TellAgent(*outgoing);
  store_.Tell(std::get<StoreAnswer>(message));
}

void Service::TellAgent(const Outgoing& outgoing) {
  const auto found = fronts_.find(outgoing.to);
  if (found == fronts_.end()) return;
  const bool heard = std::holds_alternative<Heard>(outgoing.directive());
  if (!heard) {
    world_.Log("a", outgoing.to, " <- ", DirectiveText(outgoing.directive()));
    if (const auto* assignment = std::get_if<Assignment>(&outgoing.directive())) {
      world_.checks.jobs.OnAssignment(*assignment);
    }
    if (!found->second.attends && !std::holds_alternative<Refused>(outgoing.directive())) {
      world_.checks.violations.Add(Check::kStale, "an agent is told something before it has come");
    }
    // Who came over another connection meanwhile hears there what counts.
    const bool is_old = sessions_.newest[found->second.session] != outgoing.to;
    if (core_.durable_outbox().journaled() &&
        !(is_old && std::holds_alternative<Evicted>(outgoing.directive()))) {
      world_.checks.durability.OnTold(found->second.run_id, found->second.session,
                                      RecordOf(found->second.run_id), outgoing.directive());
    }
  }
  Directive directive = outgoing.directive();
  // Only that there is one counts here: nobody forges answers.
  if (auto* welcome = std::get_if<Welcome>(&directive); welcome && options_.is_knocked_at) {
    welcome->knock_secret = "secret";
  }
  world_.network.Tell(outgoing.to, std::move(directive));
  if (std::holds_alternative<Fenced>(outgoing.directive())) {
    world_.incidents.Count(Incident::kFencedReport);
  }
  // The last that an agent hears over a connection.
  if (!std::holds_alternative<Refused>(outgoing.directive())) return;
  world_.incidents.Count(Incident::kRefused);
  fronts_.erase(found);
  world_.network.CloseByServer(outgoing.to);
}

// After what else is due in this turn of the loop, so that one commit holds it all.
void Service::CommitSoon() {
  if (!core_.NeedsCommit() || std::exchange(commits_, true)) return;
  process_->After(Duration::zero(), [this] { Commit(); });
}

void Service::Commit() {
  if (frozen_) return;
  DiskBatch bytes;
  Batch batch = core_.BeginCommit(Now());
  for (Batch::Job& job : batch.jobs) {
    std::optional<JobOnDisk> on_disk;
    if (job.record) on_disk = JobOnDisk{ToBytes(*job.record), *job.record};
    bytes.jobs.emplace_back(std::move(job.run_id), std::move(on_disk));
  }
  for (Batch::Entry& entry : batch.entries) {
    bytes.entries.push_back(
        {std::move(entry.run_id), std::move(entry.key), std::move(entry.value)});
  }
  owner_.write(std::move(bytes),
               [this, process = std::weak_ptr<Process>(process_)](DiskOutcome outcome) {
                 if (const auto alive = process.lock())
                   alive->Do([this, outcome] { OnWritten(outcome); });
               });
}

void Service::OnWritten(DiskOutcome outcome) {
  if (outcome == DiskOutcome::kBroken) return owner_.on_broken();
  if (outcome == DiskOutcome::kFull) {
    core_.DiskFull();
    Follow(std::nullopt);
    return process_->After(kTryAgainAfter, [this] { Commit(); });
  }
  core_.Committed();
  commits_ = false;
  Follow(std::nullopt);
}

void Service::ArmTimer() {
  const std::optional<TimePoint> due = core_.NextDeadline();
  // A timer that is early looks again; only an earlier time needs another.
  if (!due || (timer_due_ && *timer_due_ <= *due)) return;
  timer_due_ = due;
  process_->After(clock_.Until(*due), [this, due = *due] {
    if (timer_due_ != due) return;
    timer_due_.reset();
    if (frozen_) return;
    core_.Tick(Now());
    Follow(std::nullopt);
  });
}

}  // namespace muster::rendezvous
