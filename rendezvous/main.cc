// musterd: parse, listen, say so, run until told to end. With a state directory that is what a
// child of the keeper does, which is the main process then.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <spdlog/spdlog.h>
#include <boost/asio/io_context.hpp>

#include "absl/strings/str_cat.h"
#include "base/failure.h"
#include "base/program.h"
#include "base/text.h"
#include "rendezvous/daemon_log.h"
#include "rendezvous/daemon_parts.h"
#include "rendezvous/journal/sqlite_journal.h"
#include "rendezvous/keeper/supervised_daemon.h"
#include "rendezvous/keeper/supervisor.h"
#include "rendezvous/net/grpc_server.h"
#include "rendezvous/net/listening_socket.h"
#include "rendezvous/net/process_descriptors.h"
#include "rendezvous/server/daemon_pages.h"
#include "rendezvous/server/server.h"
#include "rendezvous/server_config.h"

namespace muster::rendezvous {
namespace {

constexpr char kReadAgain[] = "; exiting so that a restart can recover from disk";

// The main process of a daemon that takes turns with others. It holds neither the port nor a
// directory: when its daemon is dead, another may lead.
int KeepLed(ServerConfig config, std::vector<std::string> argv) {
  const int ready_fd = config.ready_fd;
  ReloadableConfig kept(std::move(argv), std::move(config), /*sockets_given=*/false);
  return RunKeeper({.argv = kept.Argv(),
                    .read_again = [&kept] { return kept.ReadAgain(); },
                    .check = [&kept] { return kept.Check(); },
                    .sockets = {},
                    .state = std::nullopt,
                    .shared_file = ::memfd_create("musterd", MFD_CLOEXEC),
                    .ready_fd = ready_fd});
}

// The main process of a daemon that remembers its jobs.
int Keep(ServerConfig config, GivenSockets given, std::vector<std::string> argv) {
  if (std::find(given.sockets.begin(), given.sockets.end(), config.ready_fd) !=
      given.sockets.end()) {
    return Fail(absl::StrCat("musterd: --ready-fd=", config.ready_fd,
                             " is the socket that the service manager has opened; name another "
                             "descriptor, or leave the flag out\n"),
                kBadInput);
  }
  // A mistake counts now, and not for those of other tenants when the daemon is started again.
  if (!config.tokens.empty()) {
    const auto tenants = Keyring::OfDirectory(config.tokens);
    if (!tenants.ok()) return Fail(FailureLine(tenants.status()), kBadInput);
  }
  UseKeeperLog("musterd", STDERR_FILENO);
  spdlog::set_level(spdlog::level::from_str(config.log_level));
  if (config.etcd) return KeepLed(std::move(config), std::move(argv));
  auto state = StateDirectory::Take(config.state_dir);
  if (!state.ok()) return Fail(FailureLine(state.status()), kNoJournal);
  std::vector<int> sockets = std::move(given.sockets);
  const bool are_given = !sockets.empty();
  if (are_given) {
    spdlog::info("{} is open already, by the service manager", ToString(given.at));
    // The daemon goes by it: whether it needs a token, and what it says of itself.
    config.listen = given.at;
  } else {
    boost::asio::io_context io(1);
    auto listening = ListenAt(io, config.listen);
    if (!listening.ok()) return Fail(ListenFailureLine(listening.status()), kCannotListen);
    for (boost::asio::ip::tcp::acceptor& each : *listening) sockets.push_back(each.release());
  }
  const int ready_fd = config.ready_fd;
  ReloadableConfig kept(std::move(argv), std::move(config), are_given);
  return RunKeeper({.argv = kept.Argv(),
                    .read_again = [&kept] { return kept.ReadAgain(); },
                    .check = [&kept] { return kept.Check(); },
                    .sockets = std::move(sockets),
                    .state = std::move(*state),
                    .ready_fd = ready_fd});
}

// What is remembered of a tenant lies in a directory of its own, under that of the daemon, whose
// lock it has.
absl::StatusOr<OpenedJournal> OpenJournalOf(boost::asio::io_context& io, const KeptThings& given,
                                            const std::string& tenant) {
  const std::string all = absl::StrCat(given.state_path, "/tenants");
  const std::string own = absl::StrCat(all, "/", tenant);
  for (const std::string& path : {all, own}) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      return base::SystemFailure(absl::StatusCode::kFailedPrecondition, "make state directory",
                                 path, errno);
    }
  }
  return OpenSqliteJournal(io, StateDirectory::Adopt(own, ::fcntl(given.lock, F_DUPFD_CLOEXEC, 0)));
}

// A daemon that forgets its jobs when it ends.
int RunForgetful(const ServerConfig& config, DaemonStart& start) {
  Server server(start.io, Server::Serves::kManyJobs);
  const absl::Status listening = server.Listen(config.listen, *start.credentials);
  if (!listening.ok()) return Fail(start.log, ListenFailureLine(listening), kCannotListen);
  auto pages = OpenPages(start.io, config, *start.credentials, server, start.turns);
  if (!pages.ok()) return Fail(start.log, FailureLine(pages.status()), kCannotListen);
  GracefulShutdown ending(start.io, server, config, *std::move(pages));
  SayWhereItListens(config, server);
  AnnounceReady(config.ready_fd, server.port());
  RunLoop(start.io, config, start.turns);
  return 0;
}

// A daemon that keeps its jobs on disk: the child of a keeper.
int RunDurable(const ServerConfig& config, const SupervisedDaemon& kept, DaemonStart& start) {
  const KeptThings& given = kept.things();
  boost::asio::io_context& io = start.io;
  DaemonLog& log = start.log;
  auto state = OpenSqliteJournal(io, StateDirectory::Adopt(given.state_path, given.lock));
  if (!state.ok()) return Fail(log, FailureLine(state.status()), kNoJournal);
  Server server(
      io,
      {.journal = state->journal.get(),
       .contents = std::move(state->contents),
       .on_fatal =
           [&log](const absl::Status& status) { EndAtOnce(log, status, kReadAgain, kNoJournal); },
       .open = [&io, &given](const std::string& tenant,
                             const auto& opened) { opened(OpenJournalOf(io, given, tenant)); },
       .tenants = TenantsOf(*start.credentials)});
  server.Prepare(*start.credentials, [] {});
  absl::Status restored;
  server.Resume([&restored](const absl::Status& status) { restored = status; }, [] {});
  if (!restored.ok()) return Fail(log, FailureLine(restored), kNoJournal);
  spdlog::info("{} with {} remembered in {}", base::Count(server.job_count(), "job"),
               base::Count(server.agent_count(), "node"), given.state_path);
  std::vector<boost::asio::ip::tcp::acceptor> sockets;
  for (const int fd : given.sockets) sockets.push_back(AcceptorOf(io, fd));
  server.AwaitPrepared();
  // Nothing that takes long may come after it.
  kept.AwaitLeave();
  const absl::Status listening = server.Listen(std::move(sockets), given.key);
  if (!listening.ok()) return Fail(log, ListenFailureLine(listening), kCannotListen);
  // Jobs go on, whether they can be shown or not.
  auto pages = OpenPages(io, config, *start.credentials, server, start.turns);
  if (!pages.ok()) spdlog::error("{}", std::string(pages.status().message()));
  GracefulShutdown ending(io, server, config, pages.ok() ? *std::move(pages) : nullptr);
  SayWhereItListens(config, server);
  kept.SayReady(server.port());
  RunLoop(io, config, start.turns);
  return 0;
}

// The daemon itself. `kept`: it is the child of a keeper; null where nothing is remembered.
int RunDaemon(const ServerConfig& config, const SupervisedDaemon* kept) {
  DaemonStart start(config, kept);
  for (const absl::Status& read : {start.credentials.status(), start.etcd.status()}) {
    if (!read.ok()) return Fail(start.log, FailureLine(read), kBadInput);
  }
  LogSecurityPosture(config, *start.credentials, start.missing);
  if (kept == nullptr) return RunForgetful(config, start);
  return config.etcd ? RunLed(config, *kept, start) : RunDurable(config, *kept, start);
}

int Main(std::vector<std::string> argv) {
  const auto parsed = ParseServerConfig({argv.begin() + 1, argv.end()});
  if (const auto* exit = std::get_if<EarlyExit>(&parsed)) {
    if (exit->exit_code == 0) return base::PrintOut("musterd", exit->text) ? 0 : kCannotAnswer;
    std::fputs(exit->text.c_str(), stderr);
    return exit->exit_code;
  }
  const ServerConfig& config = std::get<ServerConfig>(parsed);
  std::signal(SIGPIPE, SIG_IGN);

  const absl::Status fit = base::CheckKernel();
  if (!fit.ok()) return Fail(FailureLine(fit), kUnfitMachine);
  const auto kept = SupervisedDaemon::FromEnvironment();
  if (!kept.ok()) return Fail(FailureLine(kept.status()), kNoJournal);
  if (*kept) return RunDaemon(config, &**kept);
  // Before there is a log, which has a thread as well.
  const absl::Status enough = CheckThreads();
  if (!enough.ok()) return Fail(FailureLine(enough), kCannotListen);
  auto given = TakeGivenSockets();
  if (!given.ok()) return Fail(FailureLine(given.status()), kBadInput);
  if (config.etcd && !given->sockets.empty()) {
    return Fail(
        "musterd: the service manager has opened the port, but a standby must not listen; disable "
        "the socket unit\n",
        kBadInput);
  }
  if (!config.remembers()) {
    if (given->sockets.empty()) return RunDaemon(config, nullptr);
    return Fail(
        "musterd: the service manager has opened the port, which is for a daemon that is "
        "restarted; give its --state-dir, or disable the socket unit\n",
        kBadInput);
  }
  return Keep(config, *std::move(given), std::move(argv));
}

}  // namespace
}  // namespace muster::rendezvous

int main(int argc, char** argv) {
  muster::base::FillStdio();
  muster::base::SetUpSignals();
  muster::base::LendCommandLine(argc, argv);
  return muster::rendezvous::Main({argv, argv + argc});
}
