// musterd: parse, listen, say so, run until told to end.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <spdlog/spdlog.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/phrases.h"
#include "rendezvous/daemon_log.h"
#include "rendezvous/descriptor_limit.h"
#include "rendezvous/journal/sqlite_journal.h"
#include "rendezvous/ready_fd.h"
#include "rendezvous/server.h"
#include "rendezvous/server_config.h"

namespace muster::rendezvous {
namespace {

constexpr int kCannotListen = 3;
constexpr int kNoJournal = 4;

// Ends the server in good order. A daemon that remembers its jobs ends at once; they go on when it
// is started again. Else the first signal lets running jobs end, for as long as `patience`; the
// second, or the end of that time, closes them, which tells their agents why.
class Ending {
 public:
  Ending(boost::asio::io_context& io, Server& server, const ServerConfig& config)
      : server_(server),
        remembers_(!config.state_dir.empty()),
        patience_(config.drain_timeout),
        signals_(io, SIGTERM, SIGINT),
        timer_(io) {
    AwaitSignal();
  }

 private:
  void AwaitSignal() {
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

  void StopAtOnce() {
    spdlog::info("stopping; {} with {} left for the next start",
                 Count(server_.driver().job_count(), "job"),
                 Count(server_.driver().agent_count(), "node"));
    server_.driver().Freeze();
    server_.Stop([] { spdlog::info("ended"); });
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
  const bool remembers_;
  const std::chrono::seconds patience_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_;
  bool draining_ = false;
};

// What is on the disk is not known any more: nobody may be told anything, and the next start reads
// what there is. Agents ride it out.
[[noreturn]] void EndAtOnce(DaemonLog& log, const absl::Status& status) {
  log.Write(absl::StrCat("musterd: ", status.message(),
                         "; ending, so that a new start goes on from what is on disk\n"));
  log.End();
  std::_Exit(kNoJournal);
}

int Fail(DaemonLog& log, const absl::Status& status, const char* advice, int exit_code) {
  log.Write(absl::StrCat("musterd: ", status.message(), advice, "\n"));
  return exit_code;
}

int Main(int argc, char** argv) {
  const auto parsed = ParseServerConfig(std::vector<std::string>(argv + 1, argv + argc));
  if (const auto* exit = std::get_if<EarlyExit>(&parsed)) {
    std::fputs(exit->text.c_str(), exit->exit_code == 0 ? stdout : stderr);
    return exit->exit_code;
  }
  const ServerConfig& config = std::get<ServerConfig>(parsed);
  DaemonLog log("musterd", STDERR_FILENO);
  spdlog::set_level(spdlog::level::from_str(config.log_level));
  std::signal(SIGPIPE, SIG_IGN);
  RaiseDescriptorLimit();

  boost::asio::io_context io(1);
  std::unique_ptr<Journal> journal;
  std::unique_ptr<Server> opened;
  if (config.state_dir.empty()) {
    opened = std::make_unique<Server>(io);
  } else {
    auto state = OpenSqliteJournal(io, config.state_dir);
    if (!state.ok()) return Fail(log, state.status(), "", kNoJournal);
    journal = std::move(state->journal);
    absl::Status restored;
    opened = std::make_unique<Server>(
        io,
        Server::Memory{journal.get(), std::move(state->contents),
                       [&log](const absl::Status& status) { EndAtOnce(log, status); }},
        &restored);
    if (!restored.ok()) return Fail(log, restored, "", kNoJournal);
    spdlog::info("{} with {} remembered in {}", Count(opened->driver().job_count(), "job"),
                 Count(opened->driver().agent_count(), "node"), config.state_dir);
  }
  Server& server = *opened;
  if (const absl::Status status = server.Listen(config.listen, Credentials::Plaintext());
      !status.ok()) {
    return Fail(log, status,
                status.code() == absl::StatusCode::kAlreadyExists
                    ? "; is another musterd running there? Stop it, or choose another port with "
                      "--listen"
                    : "",
                kCannotListen);
  }
  Ending ending(io, server, config);
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
