// musterd: parse, listen, say so, run until told to end. With a state directory that is what a
// child of the keeper does, which is the main process then.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <spdlog/spdlog.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/strings/str_cat.h"
#include "base/companion.h"
#include "base/failure.h"
#include "base/kernel.h"
#include "base/phrases.h"
#include "base/print_out.h"
#include "base/stdio.h"
#include "rendezvous/confine.h"
#include "rendezvous/daemon_credentials.h"
#include "rendezvous/daemon_log.h"
#include "rendezvous/journal/sqlite_journal.h"
#include "rendezvous/keeper/keeper.h"
#include "rendezvous/keeper/keeper_log.h"
#include "rendezvous/keeper/kept_daemon.h"
#include "rendezvous/kept_config.h"
#include "rendezvous/net/descriptor_limit.h"
#include "rendezvous/net/given_sockets.h"
#include "rendezvous/net/listening_socket.h"
#include "rendezvous/net/ready_fd.h"
#include "rendezvous/pages/daemon_pages.h"
#include "rendezvous/pages/loop_turns.h"
#include "rendezvous/server.h"
#include "rendezvous/server_config.h"

namespace muster::rendezvous {
namespace {

constexpr int kCannotAnswer = 1;
constexpr int kBadInput = 2;
constexpr int kCannotListen = 3;
constexpr int kNoJournal = 4;
constexpr int kUnfitMachine = 5;

// Ends the server in good order. A daemon that remembers its jobs ends at once; they go on when it
// is started again. Else the first signal lets running jobs end, for as long as `patience`; the
// second, or the end of that time, closes them, which tells their agents why.
class Ending {
 public:
  // `pages` may be null.
  Ending(boost::asio::io_context& io, Server& server, const ServerConfig& config,
         std::unique_ptr<DaemonPages> pages)
      : server_(server),
        pages_(std::move(pages)),
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
                 base::Count(server_.job_count(), "job"),
                 base::Count(server_.agent_count(), "node"));
    server_.Freeze();
    Stop();
  }

  void BeginDrain(int signal) {
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

  void Stop() {
    pages_.reset();
    server_.Stop([] { spdlog::info("ended"); });
  }

  void CloseJobs(const std::string& why) {
    server_.Close(why);
    // Agents say goodbye once their workers are gone; one that does not is lost when its lease
    // ends.
  }

  Server& server_;
  std::unique_ptr<DaemonPages> pages_;
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

std::string FailureLine(const absl::Status& status, const char* advice = "") {
  return absl::StrCat("musterd: ", status.message(), advice, "\n");
}

std::string ListenFailureLine(const absl::Status& status) {
  return FailureLine(status, status.code() == absl::StatusCode::kAlreadyExists
                                 ? "; is another musterd running there? Stop it, or choose another "
                                   "port with --listen"
                                 : "");
}

// Before there is a log.
int Fail(const std::string& line, int exit_code) {
  std::fputs(line.c_str(), stderr);
  return exit_code;
}

int Fail(DaemonLog& log, const std::string& line, int exit_code) {
  log.Write(line);
  return exit_code;
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
  KeptConfig kept(std::move(argv), std::move(config), are_given);
  return RunKeeper({.argv = kept.Argv(),
                    .read_again = [&kept] { return kept.ReadAgain(); },
                    .check = [&kept] { return kept.Check(); },
                    .sockets = std::move(sockets),
                    .state = *std::move(state),
                    .ready_fd = ready_fd});
}

void SayWhereItListens(const ServerConfig& config, const Server& server) {
  spdlog::info("listening on {}", ToString(Endpoint{config.listen.host, server.port()}));
}

void SayTrouble(const std::string& sentence) {
  spdlog::warn("{}", sentence);
}

std::string FolderOf(const std::string& file) {
  return std::filesystem::absolute(file).parent_path();
}

// What is needed once the credentials have been read: their files, which are looked at again, by
// the folders they are in, as a new file takes the place of an old one.
// Returns what this system does not offer for it. To be called before there is a log, which has a
// thread.
std::vector<std::string> GiveUpTheRest(const ServerConfig& config, const std::string& state_path) {
  Confinement confinement;
  std::error_code error;
  std::vector<std::string> files = {config.token.file, config.token.own_file, config.token.tls.ca,
                                    config.token.tls.certificate, config.token.tls.key};
  if (!config.tokens.empty()) {
    confinement.reads.push_back(config.tokens);
    for (std::filesystem::directory_iterator file(config.tokens, error), end; !error && file != end;
         file.increment(error)) {
      files.push_back(file->path());
    }
  }
  for (const std::string& file : files) {
    if (file.empty() || config.token.insecure) continue;
    confinement.reads.push_back(FolderOf(file));
    // Where a link leads, as in Kubernetes.
    const std::filesystem::path real = std::filesystem::canonical(file, error);
    if (!error) confinement.reads.push_back(real.parent_path());
  }
  if (!state_path.empty()) confinement.writes.push_back(state_path);
  return Confine(confinement);
}

void SayHowSafeItIs(const ServerConfig& config, const Credentials& credentials,
                    const std::vector<std::string>& missing) {
  for (const std::string& what : missing) spdlog::debug("this system does not offer {}", what);
  if (credentials.secure()) return;
  spdlog::warn("--insecure: whoever reaches {} can join, read and end any job",
               ToString(config.listen));
}

// Those who are known at the start; none where there is one user.
std::vector<std::string> TenantsOf(const Credentials& credentials) {
  std::set<std::string> names;
  if (const Keys keys = credentials.keys()) {
    for (const Key& key : *keys) names.insert(key.tenant);
  }
  names.erase("");
  return {names.begin(), names.end()};
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

// Null where nothing is to be shown.
absl::StatusOr<std::unique_ptr<DaemonPages>> OpenPages(boost::asio::io_context& io,
                                                       const ServerConfig& config,
                                                       const Credentials& credentials,
                                                       Server& server, const LoopTurns& turns) {
  if (!config.http) return nullptr;
  auto pages = DaemonPages::Open(io, *config.http, credentials, server, &turns);
  if (pages.ok()) {
    spdlog::info("showing jobs at http://{}/",
                 ToString(Endpoint{config.http->host, (*pages)->port()}));
  }
  return pages;
}

// Until the daemon ends. Only where somebody may look is its loop measured.
void RunLoop(boost::asio::io_context& io, const ServerConfig& config, LoopTurns& turns) {
  if (config.http) return turns.Run(io);
  io.run();
}

// A daemon that forgets its jobs when it ends.
int RunForgetful(const ServerConfig& config) {
  const auto credentials = CredentialsFor(config, SayTrouble);
  const std::vector<std::string> missing = GiveUpTheRest(config, "");
  DaemonLog log("musterd", STDERR_FILENO);
  spdlog::set_level(spdlog::level::from_str(config.log_level));
  RaiseDescriptorLimit();
  boost::asio::io_context io(1);
  if (!credentials.ok()) return Fail(log, FailureLine(credentials.status()), kBadInput);
  SayHowSafeItIs(config, *credentials, missing);
  LoopTurns turns;
  Server server(io, Server::Serves::kManyJobs);
  const absl::Status listening = server.Listen(config.listen, *credentials);
  if (!listening.ok()) return Fail(log, ListenFailureLine(listening), kCannotListen);
  auto pages = OpenPages(io, config, *credentials, server, turns);
  if (!pages.ok()) return Fail(log, FailureLine(pages.status()), kCannotListen);
  Ending ending(io, server, config, *std::move(pages));
  SayWhereItListens(config, server);
  AnnounceReady(config.ready_fd, server.port());
  RunLoop(io, config, turns);
  return 0;
}

// The child of a keeper.
int RunKept(const ServerConfig& config, const KeptDaemon& kept) {
  const KeptThings& given = kept.things();
  const auto credentials = CredentialsFor(config, SayTrouble);
  const std::vector<std::string> missing = GiveUpTheRest(config, given.state_path);
  DaemonLog log("musterd", STDERR_FILENO);
  spdlog::set_level(spdlog::level::from_str(config.log_level));
  RaiseDescriptorLimit();
  prctl(PR_SET_NAME, "musterd");
  boost::asio::io_context io(1);
  if (!credentials.ok()) return Fail(log, FailureLine(credentials.status()), kBadInput);
  SayHowSafeItIs(config, *credentials, missing);
  auto state = OpenSqliteJournal(io, StateDirectory::Adopt(given.state_path, given.lock));
  if (!state.ok()) return Fail(log, FailureLine(state.status()), kNoJournal);
  kept.AwaitLeave();
  LoopTurns turns;
  absl::Status restored;
  Server server(
      io,
      {.journal = state->journal.get(),
       .contents = std::move(state->contents),
       .on_fatal = [&log](const absl::Status& status) { EndAtOnce(log, status); },
       .open = [&io,
                &given](const std::string& tenant) { return OpenJournalOf(io, given, tenant); },
       .tenants = TenantsOf(*credentials)},
      &restored);
  if (!restored.ok()) return Fail(log, FailureLine(restored), kNoJournal);
  spdlog::info("{} with {} remembered in {}", base::Count(server.job_count(), "job"),
               base::Count(server.agent_count(), "node"), given.state_path);
  std::vector<boost::asio::ip::tcp::acceptor> sockets;
  for (const int fd : given.sockets) sockets.push_back(AcceptorOf(io, fd));
  const absl::Status listening = server.Listen(std::move(sockets), given.key, *credentials);
  if (!listening.ok()) return Fail(log, ListenFailureLine(listening), kCannotListen);
  // Jobs go on, whether they can be shown or not.
  auto pages = OpenPages(io, config, *credentials, server, turns);
  if (!pages.ok()) spdlog::error("{}", std::string(pages.status().message()));
  Ending ending(io, server, config, pages.ok() ? *std::move(pages) : nullptr);
  SayWhereItListens(config, server);
  kept.SayReady(server.port());
  RunLoop(io, config, turns);
  return 0;
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
  const auto kept = KeptDaemon::FromEnvironment();
  if (!kept.ok()) return Fail(FailureLine(kept.status()), kNoJournal);
  if (*kept) return RunKept(config, **kept);
  auto given = TakeGivenSockets();
  if (!given.ok()) return Fail(FailureLine(given.status()), kBadInput);
  if (config.state_dir.empty()) {
    if (given->sockets.empty()) return RunForgetful(config);
    return Fail(
        "musterd: the service manager has opened the port, which is for a daemon that is started "
        "again; name its --state-dir, or disable the socket unit\n",
        kBadInput);
  }
  return Keep(config, *std::move(given), std::move(argv));
}

}  // namespace
}  // namespace muster::rendezvous

int main(int argc, char** argv) {
  muster::base::FillStdio();
  muster::base::LendCommandLine(argc, argv);
  return muster::rendezvous::Main({argv, argv + argc});
}
