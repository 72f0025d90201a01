#include "test/rendezvous/cluster/chaos.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLongestPause = seconds(10);  // between two faults
constexpr Duration kShortest = milliseconds(100);
constexpr Duration kLongestBlock = seconds(20);
constexpr Duration kAbsence = seconds(20);  // of a host or an agent
// Until after its job has ended, or not.
constexpr Duration kLongestStop = seconds(600);
constexpr Duration kLongAbsence = seconds(300);
// From Restore to Listen: at most Coordinator::Options::restart_grace, or a node whose knock was
// answered meanwhile counts a longer lease than the daemon does.
constexpr Duration kSlowestStart = seconds(3);

}  // namespace

Chaos::Chaos(World world, const Scenario& scenario, Daemon& daemon, Disk& disk,
             std::vector<std::unique_ptr<Host>>& hosts)
    : world_(world), scenario_(scenario), daemon_(daemon), disk_(disk), hosts_(hosts) {
  daemon_.on_ended = [this] {
    world_.scheduler.After(world_.random.Between(seconds(0), seconds(5)), [this] {
      if (!daemon_.runs()) daemon_.Start(world_.random.Between(kShortest, kSlowestStart));
    });
  };
}

void Chaos::Next() {
  const Duration pause = scenario_.only_daemon_dies
                             ? world_.random.Between(seconds(5), seconds(300))
                             : world_.random.Between(Duration::zero(), kLongestPause);
  world_.scheduler.After(pause, [this] {
    if (healed_) return;
    if (scenario_.only_daemon_dies) {
      DaemonDies(false);
    } else {
      Strike();
    }
    Next();
  });
}

void Chaos::Strike() {
  const std::int64_t what = world_.random.Below(100);
  if (what < 45) {
    StrikeNetwork(static_cast<int>(world_.random.Below(scenario_.hosts)));
  } else if (what < 75) {
    StrikeAgent(AnyHost());
  } else if (what < 85) {
    StrikeDaemon();
  } else if (what < 93) {
    StrikeDisk();
  } else if (what < 95) {
    Swizzle();
  } else {
    // Nothing: the cluster has some peace.
  }
}

void Chaos::StrikeNetwork(int host) {
  const TimePoint until = Until(kShortest, kLongestBlock);
  switch (world_.random.Below(8)) {
    case 0:
      world_.incidents.Count(Incident::kPartition);
      return world_.network.Block(host, true, true, until);
    case 1:
      world_.incidents.Count(Incident::kOneWayUp);
      return world_.network.Block(host, true, false, until);
    case 2:
      world_.incidents.Count(Incident::kOneWayDown);
      return world_.network.Block(host, false, true, until);
    case 3:
      world_.incidents.Count(Incident::kSlowNetwork);
      return world_.network.Slow(host, world_.random.Between(milliseconds(10), milliseconds(1500)),
                                 until);
    case 4:
      world_.incidents.Count(Incident::kLossyNetwork);
      return world_.network.Lose(host, world_.random.Chance(1, 2) ? 5 : 30, until);
    case 5: {
      world_.incidents.Count(Incident::kRefusedBetween);
      const bool up = world_.random.Chance(2, 3);
      return world_.network.Refuse(host, up, !up || world_.random.Chance(1, 3), until);
    }
    case 6:
      world_.incidents.Count(Incident::kConnectionCut);
      return world_.network.Break(host, ToldOfBreak::kAtOnce, ToldOfBreak::kAtOnce);
    default: {
      world_.incidents.Count(Incident::kHalfOpen);
      constexpr ToldOfBreak kTold[] = {ToldOfBreak::kNever, ToldOfBreak::kLate,
                                       ToldOfBreak::kAtOnce};
      const ToldOfBreak client = world_.random.OneOf(kTold);
      return world_.network.Break(host, client, world_.random.OneOf(kTold));
    }
  }
}

void Chaos::StrikeAgent(Host& host) {
  const Duration away = world_.random.Between(
      Duration::zero(), world_.random.Chance(1, 10) ? kLongAbsence : kAbsence);
  if (world_.random.Chance(1, 20)) {
    world_.incidents.Count(Incident::kAgentStoppedForMinutes);
    return host.StopAgent(world_.random.Between(seconds(20), kLongestStop));
  }
  switch (world_.random.Below(5)) {
    case 0:
      world_.incidents.Count(Incident::kAgentStopped);
      return host.StopAgent(world_.random.Between(kShortest, seconds(2)));
    case 1:
      world_.incidents.Count(Incident::kAgentStoppedLong);
      return host.StopAgent(world_.random.Between(seconds(2), seconds(20)));
    case 2:
      world_.incidents.Count(Incident::kAgentKilled);
      host.KillAgent();
      // Whoever keeps agents running does so at once.
      return host.StartAgentAfter(scenario_.JobOf(host.index()).settings.exact_ranks &&
                                          world_.random.Chance(1, 2)
                                      ? world_.random.Between(Duration::zero(), milliseconds(50))
                                      : away);
    case 3:
      world_.incidents.Count(Incident::kAgentTerminated);
      return host.TerminateAgent();
    default:
      world_.incidents.Count(Incident::kPowerLoss);
      host.PowerOff();
      world_.scheduler.After(away, [&host] { host.PowerOn(); });
  }
}

void Chaos::StrikeDaemon() {
  if (world_.random.Chance(1, 3)) {
    world_.incidents.Count(Incident::kDaemonHalted);
    return daemon_.Halt(world_.random.Between(kShortest, seconds(8)));
  }
  DaemonDies(world_.random.Chance(1, 3));
}

void Chaos::DaemonDies(bool power_loss) {
  if (!daemon_.runs()) return;
  world_.incidents.Count(power_loss ? Incident::kDaemonPowerLoss : Incident::kDaemonKilled);
  // A daemon without a journal has no keeper but its own last word.
  const bool keeper = !world_.random.Chance(1, 4) || scenario_.only_daemon_dies;
  if (!keeper && !power_loss) world_.incidents.Count(Incident::kKeeperKilled);
  daemon_.Kill(power_loss, keeper);
  world_.scheduler.After(world_.random.Between(Duration::zero(), scenario_.longest_outage), [this] {
    world_.network.DaemonHostIsUp();
    if (!daemon_.runs()) daemon_.Start(world_.random.Between(kShortest, kSlowestStart));
  });
}

void Chaos::StrikeDisk() {
  switch (world_.random.Below(5)) {
    case 0:
    case 1:
      world_.incidents.Count(Incident::kDiskFull);
      return disk_.FullUntil(Until(kShortest, kLongestBlock));
    case 2:
      return disk_.BreakOnce();
    default:
      world_.incidents.Count(Incident::kDiskSlow);
      return disk_.SlowUntil(world_.random.Between(milliseconds(100), seconds(3)),
                             Until(seconds(1), kLongestBlock));
  }
}

void Chaos::Swizzle() {
  world_.incidents.Count(Incident::kSwizzle);
  const TimePoint all_down = Until(seconds(1), seconds(5));
  for (int host = 0; host < scenario_.hosts; ++host) {
    if (world_.random.Chance(1, 2)) continue;
    const Duration down_after = world_.random.Between(Duration::zero(), seconds(1));
    const TimePoint up_at = all_down + world_.random.Between(Duration::zero(), seconds(5));
    world_.scheduler.After(down_after, [this, host, up_at] {
      if (!healed_) world_.network.Block(host, true, true, up_at);
    });
  }
}

void Chaos::Heal() {
  healed_ = true;
  for (int host = 0; host < scenario_.hosts; ++host) {
    world_.network.Block(host, true, true, world_.scheduler.now());
    world_.network.Slow(host, Duration::zero(), world_.scheduler.now());
    world_.network.Lose(host, 0, world_.scheduler.now());
    world_.network.Refuse(host, true, true, world_.scheduler.now());
  }
  disk_.FullUntil(world_.scheduler.now());
  disk_.SlowUntil(milliseconds(1), world_.scheduler.now());
  world_.network.DaemonHostIsUp();
  daemon_.Continue();
  if (!daemon_.runs()) daemon_.Start(kShortest);
  for (const auto& host : hosts_) {
    host->PowerOn();
    host->ContinueAgent();
    host->StartAgent();
  }
}

Host& Chaos::AnyHost() {
  return *hosts_[static_cast<std::size_t>(world_.random.Below(scenario_.hosts))];
}

TimePoint Chaos::Until(Duration shortest, Duration longest) {
  return world_.scheduler.now() + world_.random.Between(shortest, longest);
}

}  // namespace muster::rendezvous
