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

}  // namespace

void Chaos::Next() {
  const Duration pause = scenario_.only_daemon_dies
                             ? daemons_.PauseBeforeGentleStrike()
                             : world_.random.Between(Duration::zero(), kLongestPause);
  world_.scheduler.After(pause, [this] {
    if (healed_) return;
    if (scenario_.only_daemon_dies) {
      daemons_.StrikeGently();
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
    daemons_.StrikeDaemon();
  } else if (what < 93) {
    daemons_.StrikeMemory();
  } else if (what < 95) {
    Swizzle();
  } else if (what < 97) {
    // Several nodes of a job at once.
    world_.incidents.Count(Incident::kNodeDrained);
    for (const auto& host : hosts_) {
      if (world_.random.Chance(1, 2)) host->DrainNode();
    }
  } else {
    // Nothing: the cluster has some peace.
  }
}

void Chaos::StrikeNetwork(int host) {
  const TimePoint until = Until(kShortest, kLongestBlock);
  const int places = world_.network.places();
  const int place = places > 1 && world_.random.Chance(1, 2)
                        ? static_cast<int>(world_.random.Below(places))
                        : Network::kEveryPlace;
  switch (world_.random.Below(8)) {
    case 0:
      world_.incidents.Count(Incident::kPartition);
      return world_.network.Block(host, true, true, until, place);
    case 1:
      world_.incidents.Count(Incident::kOneWayUp);
      return world_.network.Block(host, true, false, until, place);
    case 2:
      world_.incidents.Count(Incident::kOneWayDown);
      return world_.network.Block(host, false, true, until, place);
    case 3:
      world_.incidents.Count(Incident::kSlowNetwork);
      return world_.network.Slow(host, world_.random.Between(milliseconds(10), milliseconds(1500)),
                                 until, place);
    case 4:
      world_.incidents.Count(Incident::kLossyNetwork);
      return world_.network.Lose(host, world_.random.Chance(1, 2) ? 5 : 30, until, place);
    case 5: {
      world_.incidents.Count(Incident::kRefusedBetween);
      const bool up = world_.random.Chance(2, 3);
      return world_.network.Refuse(host, up, !up || world_.random.Chance(1, 3), until, place);
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
  daemons_.Heal();
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
