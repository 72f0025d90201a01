// This run among the others on the machine: its entry for `muster ps`, and who uses the same GPUs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "launcher/config/launch_config.h"
#include "launcher/environment.h"
#include "launcher/machine/nproc.h"
#include "launcher/registry/run_registry.h"
#include "rendezvous/core/types.h"

namespace muster::launcher {

// From construction to destruction of the object. Nothing of it is needed for the run: what goes
// wrong is logged as a warning. On the loop's thread.
//
// What is to be shown is written a moment later, so that a run starts its workers first,
// and one that ends at once leaves its disk alone. A run with GPUs registers in the constructor, so
// that those which start together see one another.
class RunEntry {
 public:
  // Warns of devices that another run uses, then registers. `base` is the workers' environment,
  // `own` the launcher's.
  RunEntry(boost::asio::io_context& io, const LaunchConfig& config, const Environment& own,
           const Environment& base, const Machine& machine, const std::string& log_dir);

  void Show(RunState state);
  // The workers of this round start.
  void ShowRound(const rendezvous::Assignment& assignment);
  // Nothing more is written; what was stays until destruction.
  void Freeze() { timer_.cancel(); }

 private:
  void WriteSoon();
  void Write();

  RunInfo info_;
  const std::vector<std::string> dirs_;
  std::unique_ptr<RunRegistration> registration_;
  bool failed_ = false;
  bool writes_soon_ = false;
  boost::asio::steady_timer timer_;
};

}  // namespace muster::launcher
