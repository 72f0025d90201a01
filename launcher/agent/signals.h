// The signals sent to the agent, and orders that stand for them.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "launcher/agent/stop_orders.h"

namespace muster::launcher {

// Handles the signals that ask the run to end (--signals-to-handle), and SIGUSR1 and SIGUSR2, which
// are for the workers unless they are among those. A signal that was ignored when this process
// started (nohup) remains ignored. SIGUSR1 and SIGUSR2 are handled from construction on, as their
// default would end the process; the others only from Begin() on, so that until then they do end
// it. On the loop.
//
// An order to stop (stop_orders.h) and a signal may tell of one and the same wish: Slurm signals
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

}  // namespace muster::launcher
