#include "test/rendezvous/cluster/several_daemons.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kKeeperTakes = milliseconds(50);
constexpr Duration kLongestFaultOfSeveral = seconds(20);
// For a gentle fault to be over, and for all to stand by again.
constexpr Duration kCalm = seconds(40);
// Shorter than the agents' leases by what a take-over needs.
constexpr Duration kEtcdAway = seconds(5);
constexpr int kOften = 30;  // of 1000

}  // namespace

SeveralDaemons::SeveralDaemons(World world, const Scenario& scenario, Disk& disk,
                               const DaemonMutations& mutations)
    : world_(world),
      scenario_(scenario),
      etcd_(world.scheduler, world.random),
      ledger_(world.checks.violations, world.incidents, disk) {
  if (!scenario.only_daemon_dies) {
    usual_ = {.lost_per_1000 = world_.random.Chance(1, 2) ? kOften : 0,
              .late_per_1000 = world_.random.Chance(1, 2) ? kOften : 0};
  }
  for (int place = 0; place < scenario.daemons; ++place) {
    daemons_.push_back(
        std::make_unique<Standby>(world_, etcd_, ledger_, sessions_,
                                  Standby::Options{.place = place, .mutations = mutations}));
    daemons_.back()->DieInLargeBatches(!scenario.only_daemon_dies);
    Mend(*daemons_.back());
  }
}

void SeveralDaemons::Start() {
  for (const auto& daemon : daemons_) daemon->Start();
}

Standby* SeveralDaemons::leader() const {
  for (const auto& daemon : daemons_) {
    if (daemon->serves()) return daemon.get();
  }
  return nullptr;
}

const Coordinator* SeveralDaemons::coordinator() const {
  const Standby* const serves = leader();
  return serves == nullptr ? nullptr : &serves->service()->core().coordinator();
}

TimePoint SeveralDaemons::Now() const {
  const Standby* const serves = leader();
  return (serves == nullptr ? *daemons_.front() : *serves).clock().Now();
}

Standby& SeveralDaemons::Any() {
  Standby* const serves = leader();
  if (serves != nullptr && world_.random.Chance(1, 2)) return *serves;
  return *daemons_[static_cast<std::size_t>(world_.random.Below(scenario_.daemons))];
}

void SeveralDaemons::Kill(Standby& daemon) {
  world_.incidents.Count(daemon.serves() ? Incident::kLeaderKilled : Incident::kStandbyKilled);
  daemon.Kill();
  // Its keeper starts it, or is killed as well.
  const Duration away = world_.random.Chance(1, 2) ? kKeeperTakes : Soon(seconds(10));
  world_.scheduler.After(away, [&daemon] { daemon.Start(); });
}

void SeveralDaemons::LosePower(Standby& daemon) {
  world_.incidents.Count(Incident::kStandbyPowerLoss);
  daemon.PowerOff();
  world_.scheduler.After(Soon(kLongestFaultOfSeveral), [&daemon] { daemon.PowerOn(); });
}

void SeveralDaemons::Terminate(Standby& daemon) {
  world_.incidents.Count(Incident::kStandbyTerminated);
  daemon.Terminate();
}

void SeveralDaemons::Halt(Standby& daemon, Duration longest) {
  world_.incidents.Count(daemon.serves() ? Incident::kLeaderHalted : Incident::kStandbyHalted);
  daemon.Stop();
  world_.scheduler.After(Soon(longest), [&daemon] { daemon.Continue(); });
}

void SeveralDaemons::CutFromEtcd(Standby& daemon) {
  world_.incidents.Count(Incident::kCutFromEtcd);
  SimWay way = usual_;
  way.cut_to = world_.random.Chance(2, 3);
  way.cut_from = !way.cut_to || world_.random.Chance(1, 2);
  SpoilWay(daemon, way);
}

void SeveralDaemons::CutFromAgents(Standby& daemon) {
  world_.incidents.Count(Incident::kCutFromAgents);
  const TimePoint until = world_.scheduler.now() + Soon(kLongestFaultOfSeveral);
  const bool up = world_.random.Chance(2, 3);
  const bool down = !up || world_.random.Chance(1, 2);
  for (int host = 0; host < scenario_.hosts; ++host) {
    world_.network.Block(host, up, down, until, daemon.place());
  }
}

void SeveralDaemons::SpoilWay(Standby& daemon, const SimWay& way) {
  daemon.way() = way;
  world_.scheduler.After(Soon(seconds(10)), [this, &daemon] { Mend(daemon); });
}

void SeveralDaemons::Mend(Standby& daemon) {
  daemon.way() = healed_ ? SimWay{} : usual_;
}

void SeveralDaemons::StrikeDaemon() {
  Standby& daemon = Any();
  switch (world_.random.Below(8)) {
    case 0:
      return Kill(daemon);
    case 1:
      return LosePower(daemon);
    case 2:
      return Terminate(daemon);
    case 3:
    case 4:
      // Around the length of a lease, or well beyond.
      return Halt(daemon, world_.random.Chance(1, 2) ? seconds(3) : kLongestFaultOfSeveral);
    case 5:
      return CutFromEtcd(daemon);
    case 6:
      world_.incidents.Count(Incident::kBadWayToEtcd);
      return SpoilWay(daemon, {.lost_per_1000 = world_.random.Chance(1, 2) ? 10 * kOften : 0,
                               .late_per_1000 = world_.random.Chance(1, 2) ? 10 * kOften : 0,
                               .longest = milliseconds(world_.random.Chance(1, 2) ? 100 : 900)});
    default:
      return CutFromAgents(daemon);
  }
}

void SeveralDaemons::StrikeMemory() {
  switch (world_.random.Below(4)) {
    case 0:
      world_.incidents.Count(Incident::kEtcdFull);
      return etcd_.FullUntil(world_.scheduler.now() + Soon(kLongestFaultOfSeveral));
    case 1:
      world_.incidents.Count(Incident::kLeasesExtended);
      return etcd_.ExtendLeases();
    case 2: {
      world_.incidents.Count(Incident::kEtcdSlow);
      SimWay slow = usual_;
      slow.longest = milliseconds(world_.random.Chance(1, 2) ? 100 : 900);
      for (const auto& daemon : daemons_) SpoilWay(*daemon, slow);
      return;
    }
    default: {
      world_.incidents.Count(Incident::kEtcdAway);
      SimWay cut = usual_;
      cut.cut_to = cut.cut_from = true;
      const Duration away = Soon(kEtcdAway);
      for (const auto& daemon : daemons_) {
        daemon->way() = cut;
        world_.scheduler.After(away, [this, each = daemon.get()] { Mend(*each); });
      }
    }
  }
}

// One daemon at a time, and the others are well.
void SeveralDaemons::StrikeGently() {
  MendAll();
  Standby& daemon = Any();
  if (world_.random.Chance(1, 8)) {
    world_.incidents.Count(Incident::kLeasesExtended);
    etcd_.ExtendLeases();
  }
  switch (world_.random.Below(6)) {
    case 0:
      return Kill(daemon);
    case 1:
      return LosePower(daemon);
    case 2:
      return Terminate(daemon);
    case 3:
      return CutFromEtcd(daemon);
    default:
      return Halt(daemon, kLongestFaultOfSeveral);
  }
}

Duration SeveralDaemons::PauseBeforeGentleStrike() {
  return world_.random.Between(kCalm, seconds(200));
}

void SeveralDaemons::MendAll() {
  etcd_.FullUntil(TimePoint());
  for (const auto& daemon : daemons_) {
    Mend(*daemon);
    daemon->PowerOn();
    daemon->Continue();
    daemon->Start();
  }
}

void SeveralDaemons::Heal() {
  healed_ = true;
  for (const auto& daemon : daemons_) daemon->DieInLargeBatches(false);
  MendAll();
}

}  // namespace muster::rendezvous
