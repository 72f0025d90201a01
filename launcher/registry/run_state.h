// What a run is at, for whoever watches it.
#pragma once

namespace muster::launcher {

enum class RunState {
  kWaiting,     // for other nodes
  kRunning,     // its workers
  kRestarting,  // they stop, to start again
  kStopping,
};

}  // namespace muster::launcher
