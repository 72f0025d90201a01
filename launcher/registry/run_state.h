// What a run is doing, for whoever watches it.
#pragma once

namespace muster::launcher {

enum class RunState {
  kWaiting,     // for other nodes
  kRunning,     // its workers run
  kRestarting,  // the workers stop, to start again
  kStopping,
};

}  // namespace muster::launcher
