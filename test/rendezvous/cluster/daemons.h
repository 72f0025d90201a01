// What the agents of a simulated cluster attend: one daemon with a disk, or several that take
// turns.
#pragma once

#include "rendezvous/core/coordinator.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

class Daemons {
 public:
  virtual ~Daemons() = default;

  // All start, and serve some time from now.
  virtual void Start() = 0;

  // Faults: something happens to a daemon, or to what remembers.
  virtual void StrikeDaemon() = 0;
  virtual void StrikeMemory() = 0;
  // Something that no worker may notice, some time after the one before.
  virtual void StrikeGently() = 0;
  virtual Duration PauseBeforeGentleStrike() = 0;
  // Ends all faults: soon one serves, and none has any from now on.
  virtual void Heal() = 0;

  // Of the daemon that serves, and that daemon's time. Null: none does.
  virtual const Coordinator* coordinator() const = 0;
  virtual TimePoint Now() const = 0;
};

}  // namespace muster::rendezvous
