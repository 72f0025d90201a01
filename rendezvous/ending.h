// How a musterd ends when it is told to.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "rendezvous/pages/daemon_pages.h"
#include "rendezvous/server.h"
#include "rendezvous/server_config.h"

namespace muster::rendezvous {

// Ends the server in good order at SIGTERM or SIGINT. A daemon that remembers its jobs ends at
// once; they go on when it is started again, or in another daemon. Else the first signal lets
// running jobs end, for as long as the configuration says; the second, or the end of that time,
// closes them, which tells their agents why.
class Ending {
 public:
  // `pages` may be null; `stopped` is called, from the loop, when the server has stopped.
  Ending(boost::asio::io_context& io, Server& server, const ServerConfig& config,
         std::unique_ptr<DaemonPages> pages, std::function<void()> stopped = {});

 private:
  void AwaitSignal();
  void StopAtOnce();
  void BeginDrain(int signal);
  void Stop();
  void CloseJobs(const std::string& why);

  Server& server_;
  std::unique_ptr<DaemonPages> pages_;
  const std::function<void()> stopped_;
  const bool remembers_;
  const std::chrono::seconds patience_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_;
  bool draining_ = false;
};

}  // namespace muster::rendezvous
