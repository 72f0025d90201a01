// The signals sent to the agent, and orders that stand for them.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/strings/string_view.h"

#include "base/lifetime.h"
#include "launcher/cli/launch_config.h"
#include "launcher/machine/environment.h"
#include "worker/process/process.h"

namespace muster::launcher {

// Orders to end a run that come from the command that has started it, and not as signals.

// Names the descriptor that orders are read from. Srun knows no signal that it would pass on and
// that leaves workers time, but it passes on its standard input.
inline constexpr char kOrdersVariable[] = "MUSTER_ORDERS_FD";

// The descriptor, where the variable names one that is open. The variable is taken out: workers do
// not have the descriptor.
std::optional<int> TakeOrdersFd(Environment& environment);

// One order, for the signal that the command got.
std::string StopOrder(int signal);

// Reads orders until they end. Lives on the loop's thread.
class StopOrders {
 public:
  // Takes over `fd`. `on_stop` gets the number of the signal that an order stands for.
  StopOrders(boost::asio::io_context& io, int fd, std::function<void(int)> on_stop);

  void Await();

 private:
  void Hear(std::size_t size);

  boost::asio::posix::stream_descriptor input_;
  const std::function<void(int)> on_stop_;
  std::array<char, 64> piece_;
  std::string line_;
};

// Handles the signals that ask the run to end (--signals-to-handle), and SIGUSR1 and SIGUSR2, which
// are for the workers unless they are among those. What asks the run to end is handled even if this
// process was started with it ignored, as a script starts whatever it runs with `&`; all but
// SIGHUP, which nohup ignores on purpose. SIGUSR1 and SIGUSR2 that are passed on and were ignored
// remain so. They are handled from construction on, as their default would end the process; the
// others only from Begin() on, so that until then they do end it. On the loop.
//
// An order to stop (StopOrders) and a signal may tell of one and the same wish: Slurm signals
// the command that was typed, which orders its nodes to stop, and the nodes as well. So the first
// of each kind is one request, and a second request takes two of one kind, or a SIGINT after
// something else: that one is always a person's.
class Signals {
 public:
  struct Options {
    std::vector<int> stop;
    // Where orders come from; taken over.
    std::optional<int> orders_fd = std::nullopt;
    // Slurm sends SIGTERM more than once when it preempts or cancels a job, and SIGKILL when that
    // has had its time. So there SIGTERM counts once, and what makes a second request is a Ctrl-C.
    bool in_slurm = false;
  };

  Signals(boost::asio::io_context& io, const Options& options, std::function<void(int)> on_stop,
          std::function<void(int)> on_pass);

  // From now on the loop handles what asks the run to end.
  void Begin();

 private:
  void AwaitStop();
  void AwaitPass();
  // `count`: requests that have come this way.
  void OnRequest(int signal, int& count);

  const std::vector<int> stop_signals_;
  const bool in_slurm_;
  bool had_sigterm_ = false;
  boost::asio::signal_set stop_;
  boost::asio::signal_set pass_;
  std::optional<StopOrders> orders_;
  int signalled_ = 0;
  int ordered_ = 0;
  // Requests that on_stop_ was told of, and the last of them.
  int told_ = 0;
  int last_ = 0;
  const std::function<void(int)> on_stop_;
  const std::function<void(int)> on_pass_;
};

// Ctrl-Z (SIGTSTP), and what continues a run after it.

// A run is suspended by SIGTSTP, and continued by SIGCONT, or by another SIGTSTP where the process
// has not stopped with its run. If SIGTSTP was ignored when this process started, it remains so,
// and nothing is called. On the loop.
class Suspension {
 public:
  Suspension(boost::asio::io_context& io, std::function<void()> on_suspend,
             std::function<void()> on_resume);

 private:
  void Await();

  boost::asio::signal_set signals_;
  const std::function<void()> on_suspend_;
  const std::function<void()> on_resume_;
  bool suspended_ = false;
};

// Whether Slurm drains this node.
//
// Slurm tells a job's processes nothing of it, and takes triggers from its own user alone
// (strigger(1)), so each node asks slurmctld for its own state now and then (`scontrol show node`,
// one small answer). The times at which the nodes of a job ask lie evenly apart, and all together
// they ask once a second at the most, however many they are.

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

// What Slurm says of this machine.

// Why the node is to have no more jobs, from what `scontrol show node NAME` prints; to follow the
// node's name: "Slurm drains it (bad fan)", or "Slurm expects it to fail". Nullopt: jobs may run
// there, or this is none of scontrol's texts.
std::optional<std::string> WhySlurmDrains(absl::string_view shown);

}  // namespace muster::launcher
