#include "test/rendezvous/cluster/daemon.h"

#include <utility>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kShortestOutage = milliseconds(100);
constexpr Duration kLongestFault = seconds(20);  // of the disk
// From Restore to Listen: longer than any lease, as with a large store, and nobody is lost by that.
constexpr Duration kSlowestStart = seconds(20);
// For how long a keeper tells that a daemon is dead which remembers nothing.
constexpr Duration kLastWord = seconds(10);
constexpr std::uint64_t kIncarnationsPerStart = std::uint64_t{1} << 32;

JournalContents ContentsOf(const Disk& disk) {
  JournalContents contents;
  for (const auto& [run_id, job] : disk.jobs()) contents.jobs.emplace_back(run_id, job.bytes);
  for (const auto& [run_id, entries] : disk.entries()) {
    for (const auto& [key, value] : entries) contents.entries.push_back({run_id, key, value});
  }
  return contents;
}

}  // namespace

Daemon::Daemon(World world, const Scenario& scenario, Disk& disk, const DaemonMutations& mutations)
    : world_(world),
      scenario_(scenario),
      disk_(disk),
      mutations_(mutations),
      clock_(world.scheduler) {
  clock_.StartAt(world_.random.Between(seconds(0), seconds(1'000'000)));
  world_.network.on_knock = [this] { return AnswerProbe(); };
}

std::optional<ProbeWord> Daemon::AnswerProbe() const {
  if (!keeper_since_) return std::nullopt;
  if (scenario_.durable) return ProbeWord::kPaused;
  // Its port holder: then the keeper leaves, too.
  if (world_.scheduler.now() < *keeper_since_ + kLastWord) return ProbeWord::kGone;
  return std::nullopt;
}

const Coordinator* Daemon::coordinator() const {
  return service_ == nullptr ? nullptr : &service_->core().coordinator();
}

void Daemon::Start() {
  Start(kShortestOutage);
}

void Daemon::Start(Duration until_it_listens) {
  ++life_;
  process_ = std::make_shared<Process>(world_.scheduler, world_.random);
  const std::uint64_t start = scenario_.durable ? disk_.CountStart() : life_;
  service_ = std::make_unique<Service>(
      world_, process_, clock_, sessions_,
      Service::Options{
          .core = {.first_incarnation =
                       mutations_.reuses_incarnations ? 1 : start * kIncarnationsPerStart,
                   .durable = scenario_.durable},
          .mutations = mutations_},
      Service::Owner{.write =
                         [this](DiskBatch batch, std::function<void(DiskOutcome)> done) {
                           disk_.Write(std::move(batch), std::move(done));
                         },
                     .on_broken = [this] { OnBroken(); }});
  world_.Log("daemon starts, life ", life_);
  service_->Restore(ContentsOf(disk_), disk_);
  listens_ = false;
  process_->After(until_it_listens, [this] {
    listens_ = true;
    // It has made room for the daemon.
    keeper_since_.reset();
    world_.network.Listen(service_.get());
    service_->BeginToServe();
  });
}

void Daemon::Kill(bool power_loss, bool keeper) {
  if (!runs()) return;
  world_.Log("daemon dies", power_loss ? " with its host" : "");
  process_->Kill();
  process_.reset();
  disk_.WriterDied();
  world_.network.ServerDied(power_loss);
  service_.reset();
  keeper_since_.reset();
  if (keeper && !power_loss) keeper_since_ = world_.scheduler.now();
  // A machine's monotonic clock starts anew with it.
  if (power_loss) clock_.StartAt(world_.random.Between(seconds(0), seconds(1'000'000)));
}

// What is on the disk is not known: not another word.
void Daemon::OnBroken() {
  world_.scheduler.After(Duration::zero(), [this, life = life_] {
    if (life != life_ || !runs()) return;
    Kill(false, true);
    world_.scheduler.After(world_.random.Between(seconds(0), seconds(5)), [this] {
      if (!runs()) Start(world_.random.Between(kShortestOutage, kSlowestStart));
    });
  });
  process_->Stop();
}

void Daemon::Die(bool power_loss) {
  if (!runs()) return;
  world_.incidents.Count(power_loss ? Incident::kDaemonPowerLoss : Incident::kDaemonKilled);
  // A daemon without a journal has no keeper but its own port holder.
  const bool keeper = !world_.random.Chance(1, 4) || scenario_.only_daemon_dies;
  if (!keeper && !power_loss) world_.incidents.Count(Incident::kKeeperKilled);
  Kill(power_loss, keeper);
  world_.scheduler.After(world_.random.Between(Duration::zero(), scenario_.longest_outage), [this] {
    world_.network.DaemonHostIsUp();
    if (!runs()) Start(world_.random.Between(kShortestOutage, kSlowestStart));
  });
}

void Daemon::Halt(Duration duration) {
  if (!runs() || process_->stopped() || !listens_) return;
  process_->Stop();
  world_.scheduler.After(duration, [weak = std::weak_ptr<Process>(process_)] {
    if (const auto process = weak.lock()) process->Continue();
  });
}

void Daemon::StrikeDaemon() {
  if (world_.random.Chance(1, 3)) {
    world_.incidents.Count(Incident::kDaemonHalted);
    return Halt(world_.random.Between(kShortestOutage, seconds(8)));
  }
  Die(world_.random.Chance(1, 3));
}

void Daemon::StrikeMemory() {
  switch (world_.random.Below(5)) {
    case 0:
    case 1:
      world_.incidents.Count(Incident::kDiskFull);
      return disk_.FullUntil(Until(kShortestOutage, kLongestFault));
    case 2:
      return disk_.BreakOnce();
    default:
      world_.incidents.Count(Incident::kDiskSlow);
      const TimePoint until = Until(seconds(1), kLongestFault);
      return disk_.SlowUntil(world_.random.Between(milliseconds(100), seconds(3)), until);
  }
}

Duration Daemon::PauseBeforeGentleStrike() {
  return world_.random.Between(seconds(5), seconds(300));
}

void Daemon::Heal() {
  disk_.FullUntil(world_.scheduler.now());
  disk_.SlowUntil(milliseconds(1), world_.scheduler.now());
  world_.network.DaemonHostIsUp();
  if (runs()) process_->Continue();
  if (!runs()) Start(kShortestOutage);
}

}  // namespace muster::rendezvous
