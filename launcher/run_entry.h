// This run among the others on the machine: its entry for `muster ps`, and who uses the same GPUs.
#pragma once

#include <memory>
#include <string>

#include "launcher/environment.h"
#include "launcher/launch_config.h"
#include "launcher/run_registry.h"
#include "rendezvous/core/types.h"

namespace muster::launcher {

// From construction to destruction of the object. Nothing of it is needed for the run: what goes
// wrong is logged as a warning. On the loop's thread.
class RunEntry {
 public:
  // Warns of devices that another run uses, then registers. `base` is the workers' environment,
  // `own` the launcher's.
  RunEntry(const LaunchConfig& config, const Environment& own, const Environment& base,
           const std::string& log_dir);

  void Show(RunState state);
  // The workers of this round start.
  void ShowRound(const rendezvous::Assignment& assignment);

 private:
  void Update();

  RunInfo info_;
  std::unique_ptr<RunRegistration> registration_;
};

}  // namespace muster::launcher
