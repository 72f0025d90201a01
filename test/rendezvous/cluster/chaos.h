// Injects a fault into a simulated cluster every few seconds, and heals all of them.
#pragma once

#include <memory>
#include <vector>

#include "test/rendezvous/cluster/daemons.h"
#include "test/rendezvous/cluster/host.h"
#include "test/rendezvous/cluster/scenario.h"

namespace muster::rendezvous {

class Chaos {
 public:
  Chaos(World world, const Scenario& scenario, Daemons& daemons,
        std::vector<std::unique_ptr<Host>>& hosts)
      : world_(world), scenario_(scenario), daemons_(daemons), hosts_(hosts) {}

  void Begin() { Next(); }
  // Stops injecting faults, and ends the present ones.
  void Heal();

 private:
  void Next();
  void Strike();
  void StrikeNetwork(int host);
  void StrikeAgent(Host& host);
  // The links of some hosts go down one by one, and come back up in another order.
  void Swizzle();
  Host& AnyHost();
  TimePoint Until(Duration shortest, Duration longest);

  World world_;
  const Scenario& scenario_;
  Daemons& daemons_;
  std::vector<std::unique_ptr<Host>>& hosts_;
  bool healed_ = false;
};

}  // namespace muster::rendezvous
