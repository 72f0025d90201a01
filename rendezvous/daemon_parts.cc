#include "rendezvous/daemon_parts.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "rendezvous/confine.h"
#include "rendezvous/net/endpoint.h"

namespace muster::rendezvous {
namespace {

std::string FolderOf(const std::string& file) {
  return std::filesystem::absolute(file).parent_path();
}

}  // namespace

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

}  // namespace muster::rendezvous
