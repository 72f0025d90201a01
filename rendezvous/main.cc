// musterd: parse, listen, say so, run until told to end.
#include <csignal>
#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "rendezvous/ready_fd.h"
#include "rendezvous/server.h"
#include "rendezvous/server_config.h"

namespace muster::rendezvous {
namespace {

constexpr int kCannotListen = 3;

// Ends the server in good order. The first signal lets running jobs end, for as long as `patience`;
// the second, or the end of that time, closes them, which tells their agents why.
class Ending {
 public:
  Ending(boost::asio::io_context& io, Server& server, std::chrono::seconds patience)
      : server_(server), patience_(patience), signals_(io, SIGTERM, SIGINT), timer_(io) {
    AwaitSignal();
  }

 private:
  void AwaitSignal() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      if (draining_) {
        CloseJobs("the daemon was told twice to end");
      } else {
        BeginDrain(signal);
      }
      AwaitSignal();
    });
  }

  void BeginDrain(int signal) {
    draining_ = true;
    const std::string name = signal == SIGTERM ? "SIGTERM" : "SIGINT";
    spdlog::info("{}: draining, {} jobs with {} nodes are left", name, server_.driver().job_count(),
                 server_.driver().agent_count());
    server_.Drain("the daemon is ending (" + name + ")", [this] {
      timer_.cancel();
      signals_.cancel();
      server_.Stop([] { spdlog::info("ended"); });
    });
    timer_.expires_after(patience_);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) CloseJobs("the daemon is ending and its drain timeout is over");
    });
  }

  void CloseJobs(const std::string& why) {
    server_.driver().Close(why);
    // Agents say goodbye once their workers are gone; one that does not is lost when its lease
    // ends.
  }

  Server& server_;
  const std::chrono::seconds patience_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_;
  bool draining_ = false;
};

int Main(int argc, char** argv) {
  const auto parsed = ParseServerConfig(std::vector<std::string>(argv + 1, argv + argc));
  if (const auto* exit = std::get_if<EarlyExit>(&parsed)) {
    std::fputs(exit->text.c_str(), exit->exit_code == 0 ? stdout : stderr);
    return exit->exit_code;
  }
  const ServerConfig& config = std::get<ServerConfig>(parsed);
  spdlog::set_default_logger(spdlog::stderr_logger_mt("musterd"));
  spdlog::set_level(spdlog::level::from_str(config.log_level));
  std::signal(SIGPIPE, SIG_IGN);

  boost::asio::io_context io(1);
  Server server(io);
  if (const absl::Status status = server.Listen(config.listen, Credentials::Plaintext());
      !status.ok()) {
    std::fprintf(stderr, "musterd: %s%s\n", std::string(status.message()).c_str(),
                 status.code() == absl::StatusCode::kAlreadyExists
                     ? "; is another musterd running there? Stop it, or choose another port with "
                       "--listen"
                     : "");
    return kCannotListen;
  }
  Ending ending(io, server, config.drain_timeout);
  spdlog::info("listening on {}", ToString(Endpoint{config.listen.host, server.port()}));
  AnnounceReady(config.ready_fd, server.port());
  io.run();
  return 0;
}

}  // namespace
}  // namespace muster::rendezvous

int main(int argc, char** argv) {
  return muster::rendezvous::Main(argc, argv);
}
