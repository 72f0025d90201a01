#include "test/rendezvous/cluster/standby.h"

#include <utility>

#include "rendezvous/daemon_parts.h"
#include "rendezvous/etcd/etcd_journal.h"
#include "test/rendezvous/simulation/sim_alarm.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kRoot[] = "/muster";
constexpr char kLeader[] = "/muster/leader";
// From when all is read until agents can connect.
constexpr Duration kLongestStart = milliseconds(300);
constexpr Duration kStandbyTakes = milliseconds(50);
constexpr std::uint64_t kIncarnationsOfALeader = std::uint64_t{1} << 32;
// As etcd/batch_plan.h has it, more than one transaction takes.
constexpr std::size_t kLargeBatch = 100;
constexpr std::int64_t kLargeBatchTakes = 20'000;  // microseconds
// Clocks run faster or slower by a hundredth.
constexpr std::int64_t kMostPpm = 10'000;

JournalBatch ToJournal(const DiskBatch& batch) {
  JournalBatch bytes;
  for (const auto& [run_id, job] : batch.jobs) {
    bytes.jobs.push_back({run_id, job ? std::optional(job->bytes) : std::nullopt});
  }
  for (const DiskBatch::Entry& entry : batch.entries) {
    bytes.entries.push_back({entry.run_id, entry.key, entry.value});
  }
  return bytes;
}

}  // namespace

Standby::Standby(World world, SimEtcd& etcd, Ledger& ledger, KnownSessions& sessions,
                 const Options& options)
    : world_(world),
      etcd_(etcd),
      ledger_(ledger),
      sessions_(sessions),
      options_(options),
      clock_(world.scheduler) {
  clock_.StartAt(world_.random.Between(seconds(0), seconds(1'000'000)));
  clock_.RunFaster(world_.random.Below(2 * kMostPpm) - kMostPpm);
}

void Standby::Start() {
  if (process_ != nullptr || !powered_) return;
  ++life_;
  world_.Log("daemon ", options_.place, " stands by, life ", life_);
  process_ = std::make_shared<Process>(world_.scheduler, world_.random);
  client_ = std::make_unique<SimEtcdClient>(
      world_.scheduler, world_.random, etcd_, way_, process_,
      SimEtcdClient::Mutations{.reads_stale = options_.mutations.reads_stale});
  candidate_.emplace(
      std::make_unique<SimAlarm>(process_, clock_), *client_,
      etcd::Election::Options{.key = kLeader,
                              .name = absl::StrCat("d", options_.place),
                              .ttl = kLeadLease,
                              .of_the_dead = noted_lease_},
      etcd::Candidate::Handlers{
          .won = [this](const etcd::Fence& fence, etcd::LeaseId lease) { TakeOver(fence, lease); },
          .follows = [](const std::string&) {},
          .lost =
              [this](const std::string& why) {
                world_.incidents.Count(Incident::kLeadLost);
                End(why);
              },
          .trouble = [](const std::string&) {}});
}

void Standby::TakeOver(const etcd::Fence& fence, etcd::LeaseId lease) {
  noted_lease_ = lease_ = lease;
  fence_ = fence;
  source_.reset();
  pages_.emplace(*client_, [this] { return clock_.Now(); });
  source_ = std::make_unique<etcd::EtcdSource>(*client_, *pages_, fence_);
  etcd::OpenEtcdJournal(
      *client_, fence_, kRoot, *source_,
      [this](absl::StatusOr<OpenedJournal> opened) { OnOpened(std::move(opened)); });
}

void Standby::OnOpened(absl::StatusOr<OpenedJournal> opened) {
  if (opened.ok()) {
    home_ = *std::move(opened);
    return process_->After(Duration(world_.random.Below(kLongestStart.count())),
                           [this] { Serve(); });
  }
  const absl::Status& status = opened.status();
  if (!absl::IsAborted(status) && !absl::IsResourceExhausted(status)) {
    world_.checks.violations.Add(Check::kRestored, std::string(status.message()));
  }
  End(std::string(status.message()));
}

void Standby::Serve() {
  if (!candidate_->Leads()) return End("it took longer than the lease to begin to serve");
  world_.Log("daemon ", options_.place, " leads by ", fence_.created);
  if (ledger_.leader() != 0) world_.incidents.Count(Incident::kTookOver);
  ledger_.TookOver(fence_.created, home_.contents);
  service_ = std::make_unique<Service>(
      world_, process_, clock_, sessions_,
      Service::Options{
          .core = {.first_incarnation = home_.contents.incarnation * kIncarnationsOfALeader,
                   .durable = true,
                   .shortest_lease = options_.mutations.grants_short_leases
                                         ? Duration::zero()
                                         : Duration(kShortestLease)},
          .mutations = options_.mutations,
          .is_knocked_at = false},
      Service::Owner{.write =
                         [this](DiskBatch batch, std::function<void(DiskOutcome)> done) {
                           Write(std::move(batch), std::move(done));
                         },
                     .on_broken = [this] { End("its journal is closed"); },
                     .leads = [this] { return candidate_->Leads(); },
                     .on_word = [this] { OnWord(); }});
  service_->Restore(home_.contents, ledger_.disk());
  home_.contents = {};
  world_.network.Listen(service_.get(), options_.place);
  service_->BeginToServe();
}

void Standby::Write(DiskBatch batch, std::function<void(DiskOutcome)> done) {
  const bool is_large = batch.jobs.size() + batch.entries.size() > kLargeBatch;
  if (is_large) {
    world_.incidents.Count(Incident::kLargeBatch);
    if (dies_in_large_batches_ && world_.random.Chance(1, 4)) {
      world_.scheduler.After(std::chrono::microseconds(world_.random.Below(kLargeBatchTakes)),
                             [this, life = life_] {
                               if (life != life_ || process_ == nullptr) return;
                               world_.incidents.Count(Incident::kDiedInLargeBatch);
                               Kill();
                               world_.scheduler.After(kStandbyTakes, [this] { Start(); });
                             });
    }
  }
  ledger_.Writes(fence_.created, batch);
  home_.journal->Commit(ToJournal(batch), [this, done = std::move(done)](const absl::Status& s) {
    OnCommitted(s, done);
  });
}

void Standby::OnCommitted(const absl::Status& status,
                          const std::function<void(DiskOutcome)>& done) {
  if (status.ok()) {
    ledger_.Acknowledged(fence_.created);
    return done(DiskOutcome::kWritten);
  }
  if (absl::IsResourceExhausted(status)) {
    world_.incidents.Count(Incident::kBatchWithoutSpace);
    return done(DiskOutcome::kFull);
  }
  if (!absl::IsAborted(status)) {
    world_.checks.violations.Add(Check::kDurable, std::string(status.message()));
  }
  done(DiskOutcome::kBroken);
}

void Standby::OnWord() {
  const etcd::LeaseId holder = etcd_.HolderOf(kLeader);
  if ((holder == 0 || holder == lease_) && ledger_.leader() == fence_.created) return;
  world_.checks.violations.Add(
      Check::kOneSpeaks, absl::StrCat("daemon ", options_.place, " speaks when another leads"));
}

void Standby::End(const std::string& why) {
  if (process_ == nullptr || process_->killed()) return;
  world_.Log("daemon ", options_.place, " ends: ", why);
  process_->Kill();
  world_.scheduler.After(Duration::zero(), [this, life = life_] {
    if (life != life_ || process_ == nullptr) return;
    CleanUp(false);
    world_.scheduler.After(kStandbyTakes, [this] { Start(); });
  });
}

void Standby::Kill() {
  if (process_ == nullptr) return;
  world_.Log("daemon ", options_.place, " is killed");
  CleanUp(false);
}

void Standby::CleanUp(bool power_loss) {
  process_->Kill();
  world_.network.ServerDied(power_loss, options_.place);
  service_.reset();
  home_ = {};
  candidate_.reset();
  client_.reset();
  process_.reset();
}

void Standby::Terminate() {
  if (process_ == nullptr || process_->stopped() || process_->killed()) return;
  candidate_->Resign([this] {
    noted_lease_ = 0;
    End("it was told to");
  });
}

void Standby::Stop() {
  if (process_ != nullptr) process_->Stop();
}

void Standby::Continue() {
  if (process_ != nullptr) process_->Continue();
}

void Standby::PowerOff() {
  if (!std::exchange(powered_, false)) return;
  world_.Log("daemon ", options_.place, " loses its power");
  if (process_ != nullptr) {
    CleanUp(true);
  } else {
    world_.network.ServerDied(true, options_.place);
  }
  noted_lease_ = 0;
}

void Standby::PowerOn() {
  if (std::exchange(powered_, true)) return;
  // A machine's clock starts anew with it.
  clock_.StartAt(world_.random.Between(seconds(0), seconds(1'000'000)));
  world_.network.DaemonHostIsUp(options_.place);
  Start();
}

}  // namespace muster::rendezvous
