// The signals sent to the agent.
#pragma once

#include <functional>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

namespace muster::launcher {

// Handles the signals that ask the run to end (--signals-to-handle), and SIGUSR1 and SIGUSR2, which
// are for the workers unless they are among those. A signal that was ignored when this process
// started (nohup) remains ignored. SIGUSR1 and SIGUSR2 are handled from construction on, as their
// default would end the process; the others only from Begin() on, so that until then they do end
// it. On the loop.
class Signals {
 public:
  Signals(boost::asio::io_context& io, const std::vector<int>& stop_signals,
          std::function<void(int)> on_stop, std::function<void(int)> on_pass);

  // From now on the loop handles the signals that ask the run to end.
  void Begin();

 private:
  void AwaitStop();
  void AwaitPass();

  const std::vector<int> stop_signals_;
  boost::asio::signal_set stop_;
  boost::asio::signal_set pass_;
  const std::function<void(int)> on_stop_;
  const std::function<void(int)> on_pass_;
};

}  // namespace muster::launcher
