// Injects a fault into a simulated cluster every few seconds, and heals all of them.
#pragma once

#include <memory>
#include <vector>

#include "test/rendezvous/cluster/daemon.h"
#include "test/rendezvous/cluster/disk.h"
#include "test/rendezvous/cluster/host.h"
#include "test/rendezvous/cluster/scenario.h"

namespace muster::rendezvous {

class Chaos {
 public:
  Chaos(World world, const Scenario& scenario, Daemon& daemon, Disk& disk,
        std::vector<std::unique_ptr<Host>>& hosts);

  void Begin() { Next(); }
  // Stops injecting faults, and ends the present ones.
  void Heal();

 private:
  void Next();
  void Strike();
  void StrikeNetwork(int host);
  void StrikeAgent(Host& host);
  void StrikeDaemon();
  void StrikeDisk();
  // The links of some hosts go down one by one, and come back up in another order.
  void Swizzle();
  void DaemonDies(bool power_loss);
  Host& AnyHost();
  TimePoint Until(Duration shortest, Duration longest);

  World world_;
  const Scenario& scenario_;
  Daemon& daemon_;
  Disk& disk_;
  std::vector<std::unique_ptr<Host>>& hosts_;
  bool healed_ = false;
};

}  // namespace muster::rendezvous
