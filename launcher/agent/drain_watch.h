// Whether Slurm drains this node.
//
// Slurm tells a job's processes nothing of it, and takes triggers from its own user alone
// (strigger(1)), so each node asks slurmctld for its own state now and then (`scontrol show node`,
// one small answer). The times at which the nodes of a job ask lie evenly apart, and all together
// they ask once a second at the most, however many they are.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/lifetime.h"
#include "launcher/config/launch_config.h"
#include "launcher/environment.h"
#include "worker/process/timed_command.h"

namespace muster::launcher {

// Lives on the loop's thread, which must be the main thread (worker/process/spawn.h).
class DrainWatch {
 public:
  struct Callbacks {
    // The node is being drained; called again and again as long as it is. `why` is about the node:
    // "Slurm drains it (bad fan)". May destroy the watch.
    std::function<void(const std::string& why)> on_drained;
    // A child of this program was started, which is no worker.
    std::function<void(pid_t)> on_command;
  };

  // Null where there is nobody to ask, or the user wants nobody to be asked: outside of Slurm's
  // jobs, with MUSTER_SLURM=0, in a job of one node, with --drain-interval=0.
  static std::unique_ptr<DrainWatch> Begin(boost::asio::io_context& io, const LaunchConfig& config,
                                           const Environment& environment, Callbacks callbacks);

  // When node `rank` of `nodes` asks for the first time, and how long after that again and again.
  struct Times {
    std::chrono::milliseconds first{0};
    std::chrono::milliseconds interval{0};
  };
  static Times TimesOf(std::chrono::milliseconds interval, int rank, int nodes);
  // The first of a node's times that is still to come; `due` was one of them. A node that stood
  // still, maybe with all others, does not ask at once: they would ask together from then on.
  static std::chrono::steady_clock::time_point NextTime(std::chrono::steady_clock::time_point due,
                                                        std::chrono::milliseconds interval,
                                                        std::chrono::steady_clock::time_point now);

 private:
  DrainWatch(boost::asio::io_context& io, std::string node, std::vector<std::string> environment,
             Times times, bool is_elastic, Callbacks callbacks);
  // The question for which timer_ is set.
  void AwaitQuestion();
  // The one after that.
  void AwaitNext();
  void Ask();
  void OnAnswer(const worker::TimedCommandResult& result);
  // There is none; the user is told the first time.
  void OnNoAnswer(const std::string& why);

  boost::asio::io_context& io_;
  const std::string node_;
  const std::vector<std::string> environment_;
  const Times times_;
  // A node that is drained would leave the job.
  const bool is_elastic_;
  const Callbacks callbacks_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<worker::TimedCommand> question_;
  // The last question had no answer.
  bool is_deaf_ = false;
  base::Lifetime lifetime_;
};

}  // namespace muster::launcher
