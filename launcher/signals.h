// The signals that come to the agent.
#pragma once

#include <functional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

namespace muster::launcher {

// Hears SIGTERM, SIGINT, SIGHUP and SIGQUIT, which ask the run to end, and SIGUSR1 and SIGUSR2,
// which are the workers' business. One that was ignored when this process started (nohup) stays
// ignored. From construction on, on the loop.
class Signals {
 public:
  Signals(boost::asio::io_context& io, std::function<void(int)> on_stop,
          std::function<void(int)> on_pass);

  // No signal is heard any more, and the loop need not stay for one.
  void Close();

 private:
  void AwaitStop();
  void AwaitPass();

  boost::asio::signal_set stop_;
  boost::asio::signal_set pass_;
  const std::function<void(int)> on_stop_;
  const std::function<void(int)> on_pass_;
};

}  // namespace muster::launcher
