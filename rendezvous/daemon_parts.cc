#include "rendezvous/daemon_parts.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <set>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

#include "base/text.h"
#include "rendezvous/confine.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/find_credentials.h"
#include "rendezvous/net/process_descriptors.h"

namespace muster::rendezvous {
std::string FailureLine(const absl::Status& status, const char* advice) {
  return absl::StrCat("musterd: ", status.message(), advice, "\n");
}

std::string ListenFailureLine(const absl::Status& status) {
  return FailureLine(status, status.code() == absl::StatusCode::kAlreadyExists
                                 ? "; is another musterd running there? Stop it, or choose another "
                                   "port with --listen"
                                 : "");
}

int Fail(const std::string& line, int exit_code) {
  std::fputs(line.c_str(), stderr);
  return exit_code;
}

int Fail(DaemonLog& log, const std::string& line, int exit_code) {
  log.Write(line);
  return exit_code;
}

void EndAtOnce(DaemonLog& log, const absl::Status& status, const char* consequence, int exit_code) {
  log.Write(absl::StrCat("musterd: ", status.message(), consequence, "\n"));
  log.End();
  std::_Exit(exit_code);
}

void SayWhereItListens(const ServerConfig& config, const Server& server) {
  spdlog::info("listening on {}", ToString(Endpoint{config.listen.host, server.port()}));
}

void SayTrouble(const std::string& sentence) {
  spdlog::warn("{}", sentence);
}

namespace {

// Leaves what is needed once the credentials have been read: their files, which are looked at
// again, by the folders they are in, as a new file takes the place of an old one. Returns what this
// system does not offer for it.
std::vector<std::string> DropPrivileges(const ServerConfig& config, const std::string& state_path) {
  Confinement confinement;
  std::error_code error;
  std::vector<std::string> files;
  if (!config.token.insecure) {
    files = {config.token.file, config.token.own_file, config.token.tls.ca,
             config.token.tls.certificate, config.token.tls.key};
  }
  if (config.etcd) {
    for (const std::string& file : {config.etcd->authority, config.etcd->certificate,
                                    config.etcd->key, config.etcd->password_file}) {
      files.push_back(file);
    }
  }
  // Where there is no home for it, the token is elsewhere.
  if (config.tokens.empty() && config.token.tls.empty() && config.token.fd < 0 &&
      !config.token.insecure) {
    files.push_back(FindTokenFile(config.token, config.listen).value_or(""));
  }
  if (!config.tokens.empty()) {
    confinement.reads.push_back(config.tokens);
    for (std::filesystem::directory_iterator file(config.tokens, error), end; !error && file != end;
         file.increment(error)) {
      files.push_back(file->path());
    }
  }
  for (const std::string& file : files) {
    if (file.empty()) continue;
    for (std::string& folder : FoldersOf(file)) confinement.reads.push_back(std::move(folder));
  }
  if (!state_path.empty()) confinement.writes.push_back(state_path);
  // The time zone is for the log, and may be anywhere.
  ::tzset();
  return Confine(confinement);
}

}  // namespace

DaemonStart::DaemonStart(const ServerConfig& config, const SupervisedDaemon* kept)
    : credentials(CredentialsFor(config, SayTrouble)),
      etcd(config.etcd ? ReadEtcdOptions(*config.etcd) : etcd::EtcdOptions()),
      missing(
          DropPrivileges(config, kept != nullptr && !config.etcd ? kept->things().state_path : "")),
      log("musterd", STDERR_FILENO) {
  spdlog::set_level(spdlog::level::from_str(config.log_level));
  RaiseDescriptorLimit();
  if (kept != nullptr) prctl(PR_SET_NAME, "musterd");
}

void LogSecurityPosture(const ServerConfig& config, const Credentials& credentials,
                        const std::vector<std::string>& missing) {
  for (const std::string& what : missing) spdlog::debug("this system does not offer {}", what);
  for (const std::string& what : UnreadableFilesOfNames()) {
    spdlog::warn("{}; host names may not resolve until then", what);
  }
  if (credentials.secure()) return;
  spdlog::warn("--insecure: anyone who can reach {} can join, read and end any job",
               ToString(config.listen));
}

std::vector<std::string> TenantsOf(const Credentials& credentials) {
  std::set<std::string> names;
  if (const Keys keys = credentials.keys()) {
    for (const Key& key : *keys) names.insert(key.tenant);
  }
  names.erase("");
  return {names.begin(), names.end()};
}

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

void RunLoop(boost::asio::io_context& io, const ServerConfig& config, LoopTurns& turns) {
  if (config.http) return turns.Run(io);
  io.run();
}

GracefulShutdown::GracefulShutdown(boost::asio::io_context& io, Server& server,
                                   const ServerConfig& config, std::unique_ptr<DaemonPages> pages,
                                   std::function<void()> stopped)
    : server_(server),
      pages_(std::move(pages)),
      stopped_(std::move(stopped)),
      remembers_(config.remembers()),
      patience_(config.drain_timeout),
      signals_(io, SIGTERM, SIGINT),
      timer_(io) {
  AwaitSignal();
}

void GracefulShutdown::AwaitSignal() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    // One that came just before the server was stopped is told of here all the same.
    if (error || stopping_) return;
    if (remembers_) return StopAtOnce();
    if (draining_) {
      // Agents say goodbye once their workers are gone; one that does not is lost when its lease
      // ends.
      server_.Close("the daemon was asked to stop a second time");
    } else {
      BeginDrain(signal);
    }
    if (!stopping_) AwaitSignal();
  });
}

void GracefulShutdown::StopAtOnce() {
  spdlog::info("stopping; {} with {} left for the next start",
               base::Count(server_.job_count(), "job"), base::Count(server_.agent_count(), "node"));
  server_.Freeze();
  Stop();
}

void GracefulShutdown::BeginDrain(int signal) {
  draining_ = true;
  const std::string name = signal == SIGTERM ? "SIGTERM" : "SIGINT";
  spdlog::info("{}: draining, {} jobs with {} nodes are left", name, server_.job_count(),
               server_.agent_count());
  server_.Drain("the daemon is stopping (" + name + ")", [this] {
    timer_.cancel();
    signals_.cancel();
    Stop();
  });
  timer_.expires_after(patience_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) server_.Close("the daemon is stopping and its drain timeout is over");
  });
}

void GracefulShutdown::Stop() {
  stopping_ = true;
  pages_.reset();
  server_.Stop([this] {
    spdlog::info("ended");
    if (stopped_) stopped_();
  });
}

}  // namespace muster::rendezvous
