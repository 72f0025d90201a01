// Two or three daemons that take turns over a simulated etcd.
#pragma once

#include <memory>
#include <vector>

#include "test/rendezvous/cluster/daemons.h"
#include "test/rendezvous/cluster/ledger.h"
#include "test/rendezvous/cluster/scenario.h"
#include "test/rendezvous/cluster/standby.h"
#include "test/rendezvous/cluster/world.h"
#include "test/rendezvous/etcd/sim_etcd.h"

namespace muster::rendezvous {

// At each place of the network is one. What etcd has acknowledged is kept in `disk`, for the
// checks.
class SeveralDaemons final : public Daemons {
 public:
  SeveralDaemons(World world, const Scenario& scenario, Disk& disk,
                 const DaemonMutations& mutations);

  void Start() override;
  void StrikeDaemon() override;
  void StrikeMemory() override;
  void StrikeGently() override;
  Duration PauseBeforeGentleStrike() override;
  void Heal() override;
  const Coordinator* coordinator() const override;
  TimePoint Now() const override;

 private:
  // The one that serves; null: none does.
  Standby* leader() const;
  // Often the one that serves.
  Standby& Any();
  void Kill(Standby& daemon);
  void LosePower(Standby& daemon);
  void Terminate(Standby& daemon);
  void Halt(Standby& daemon, Duration longest);
  void CutFromEtcd(Standby& daemon);
  void CutFromAgents(Standby& daemon);
  // Of one, or of all.
  void SpoilWay(Standby& daemon, const SimWay& way);
  void Mend(Standby& daemon);
  void MendAll();
  Duration Soon(Duration longest) { return world_.random.Between(Duration::zero(), longest); }

  World world_;
  const Scenario& scenario_;
  SimEtcd etcd_;
  Ledger ledger_;
  KnownSessions sessions_;
  std::vector<std::unique_ptr<Standby>> daemons_;
  SimWay usual_;  // how the ways to etcd are when nothing has spoilt them
  bool healed_ = false;
};

}  // namespace muster::rendezvous
