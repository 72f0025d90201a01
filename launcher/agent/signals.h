// The signals that come to the agent.
#pragma once

#include <functional>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

namespace muster::launcher {

// Hears the signals that ask the run to end (--signals-to-handle), and SIGUSR1 and SIGUSR2, which
// are the workers' business unless they are among those. One that was ignored when this process
// started (nohup) stays ignored. The latter are heard from construction on, as their default would
// end the process; the former from Begin() on, so that until then they do just that. On the loop.
class Signals {
 public:
  Signals(boost::asio::io_context& io, const std::vector<int>& stop_signals,
          std::function<void(int)> on_stop, std::function<void(int)> on_pass);

  // From now on the loop hears the signals that ask the run to end.
  void Begin();

  // No signal is heard any more, and the loop need not stay for one.
  void Close();

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
