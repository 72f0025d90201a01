// This run among the others on the machine: its entry for `muster ps`, and who uses the same GPUs.
#pragma once

#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "launcher/config/launch_config.h"
#include "launcher/environment.h"
#include "launcher/machine/nproc.h"
#include "launcher/registry/run_registry.h"
#include "launcher/registry/runs_place.h"
#include "rendezvous/core/types.h"

namespace muster::launcher {

// The entry exists for as long as this object does. The run does not depend on it: errors are
// logged as warnings. On the loop's thread.
//
// Changes are written a moment later, so that a run starts its workers first, and one that ends at
// once leaves the disk alone. A run with GPUs registers in the constructor, so that runs which
// start together see one another.
class RunEntry {
 public:
  // Warns about devices that another run uses, then registers. `base` is the workers' environment,
  // `own` the launcher's. `launched`: as RunInfo's.
  RunEntry(boost::asio::io_context& io, const LaunchConfig& config, const Environment& own,
           const Environment& base, const Machine& machine, const std::string& log_dir,
           bool launched);

  void Show(RunState state);
  // The workers of this round are starting.
  void ShowRound(const rendezvous::Assignment& assignment);
  // Writes nothing more; the entry remains as it is until destruction.
  void Freeze() { timer_.cancel(); }

 private:
  void WriteSoon();
  void Write();

  RunInfo info_;
  const RunsPlace place_;
  std::unique_ptr<RunRegistration> registration_;
  bool failed_ = false;
  bool writes_soon_ = false;
  boost::asio::steady_timer timer_;
};

}  // namespace muster::launcher
