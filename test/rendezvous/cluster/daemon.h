// A daemon that is the only one: the process that serves, its keeper, and its simulated disk.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "test/rendezvous/cluster/daemons.h"
#include "test/rendezvous/cluster/disk.h"
#include "test/rendezvous/cluster/scenario.h"
#include "test/rendezvous/cluster/service.h"
#include "test/rendezvous/cluster/world.h"
#include "test/rendezvous/simulation/process.h"
#include "test/rendezvous/simulation/sim_clock.h"

namespace muster::rendezvous {

class Daemon final : public Daemons {
 public:
  Daemon(World world, const Scenario& scenario, Disk& disk, const DaemonMutations& mutations);
  ~Daemon() override { Kill(false, false); }

  void Start() override;
  void StrikeDaemon() override;
  void StrikeMemory() override;
  void StrikeGently() override { Die(false); }
  Duration PauseBeforeGentleStrike() override;
  void Heal() override;
  const Coordinator* coordinator() const override;
  TimePoint Now() const override { return clock_.Now(); }

 private:
  bool runs() const { return process_ != nullptr; }
  // Starts the process, which listens after `until_it_listens`. It must not be running.
  void Start(Duration until_it_listens);
  // `keeper`: its keeper keeps running, unless the host loses power.
  void Kill(bool power_loss, bool keeper);
  // It is killed, and comes back.
  void Die(bool power_loss);
  void Halt(Duration duration);
  void OnBroken();
  TimePoint Until(Duration shortest, Duration longest) {
    return world_.scheduler.now() + world_.random.Between(shortest, longest);
  }

  // The answer of its keeper, which holds the port while the daemon is dead.
  std::optional<ProbeWord> AnswerProbe() const;

  World world_;
  const Scenario& scenario_;
  Disk& disk_;
  const DaemonMutations mutations_;

  SimClock clock_;
  KnownSessions sessions_;
  std::shared_ptr<Process> process_;
  std::uint64_t life_ = 0;
  bool listens_ = false;
  // When it died and left a keeper on its host. Nothing if it is alive or the host lost power.
  std::optional<TimePoint> keeper_since_;
  std::unique_ptr<Service> service_;
};

}  // namespace muster::rendezvous
