#include "rendezvous/ending.h"

#include <csignal>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/phrases.h"

namespace muster::rendezvous {

Ending::Ending(boost::asio::io_context& io, Server& server, const ServerConfig& config,
               std::unique_ptr<DaemonPages> pages, std::function<void()> stopped)
    : server_(server),
      pages_(std::move(pages)),
      stopped_(std::move(stopped)),
      remembers_(config.remembers()),
      patience_(config.drain_timeout),
      signals_(io, SIGTERM, SIGINT),
      timer_(io) {
  AwaitSignal();
}

void Ending::AwaitSignal() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    if (remembers_) return StopAtOnce();
    if (draining_) {
      CloseJobs("the daemon was told twice to end");
    } else {
      BeginDrain(signal);
    }
    AwaitSignal();
  });
}

void Ending::StopAtOnce() {
  spdlog::info("stopping; {} with {} left for the next start",
               base::Count(server_.job_count(), "job"), base::Count(server_.agent_count(), "node"));
  server_.Freeze();
  Stop();
}

void Ending::BeginDrain(int signal) {
  draining_ = true;
  const std::string name = signal == SIGTERM ? "SIGTERM" : "SIGINT";
  spdlog::info("{}: draining, {} jobs with {} nodes are left", name, server_.job_count(),
               server_.agent_count());
  server_.Drain("the daemon is ending (" + name + ")", [this] {
    timer_.cancel();
    signals_.cancel();
    Stop();
  });
  timer_.expires_after(patience_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) CloseJobs("the daemon is ending and its drain timeout is over");
  });
}

void Ending::Stop() {
  pages_.reset();
  server_.Stop([this] {
    spdlog::info("ended");
    if (stopped_) stopped_();
  });
}

void Ending::CloseJobs(const std::string& why) {
  server_.Close(why);
  // Agents say goodbye once their workers are gone; one that does not is lost when its lease
  // ends.
}

}  // namespace muster::rendezvous
