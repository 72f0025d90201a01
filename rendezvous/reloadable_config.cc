#include "rendezvous/server_config.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "rendezvous/core/values/limits.h"
#include "rendezvous/net/find_credentials.h"

namespace muster::rendezvous {
namespace {

bool IsSamePath(const std::string& one, const std::string& other) {
  const auto whole = [](const std::string& path) {
    std::error_code error;
    const auto real =
        std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
    return error ? std::filesystem::path(path) : real;
  };
  return one == other || whole(one + "/") == whole(other + "/");
}

}  // namespace

ReloadableConfig::ReloadableConfig(std::vector<std::string> argv, ServerConfig config,
                                   bool sockets_given)
    : argv_(std::move(argv)),
      config_(std::move(config)),
      sockets_given_(sockets_given),
      read_(config_) {}

absl::StatusOr<std::vector<std::string>> ReloadableConfig::ReadAgain() {
  auto parsed = ParseServerConfig({argv_.begin() + 1, argv_.end()});
  if (const auto* mistake = std::get_if<EarlyExit>(&parsed)) {
    absl::string_view sentence = mistake->text;
    absl::ConsumePrefix(&sentence, "musterd: ");
    absl::ConsumeSuffix(&sentence, "\n");
    return absl::InvalidArgumentError(sentence);
  }
  ServerConfig& read = std::get<ServerConfig>(parsed);
  if (absl::Status held = CheckWhatIsHeld(read); !held.ok()) return held;
  read.listen = config_.listen;
  read_ = std::move(read);
  return ArgvOf(read_);
}

absl::Status ReloadableConfig::Check() const {
  if (read_.etcd) {
    if (auto options = ReadEtcdOptions(*read_.etcd); !options.ok()) return options.status();
  }
  return CredentialsFor(read_).status();
}

absl::Status ReloadableConfig::CheckWhatIsHeld(const ServerConfig& read) const {
  const auto refuse = [&read](const std::string& what, const std::string& held) {
    return absl::FailedPreconditionError(
        absl::StrCat(read.config_file, " has ", what, ", and ", held,
                     " stays until musterd is stopped and started again"));
  };
  if (config_.etcd) {
    // Its credentials may change.
    const bool same = read.etcd && read.etcd->url == config_.etcd->url;
    if (!same) return refuse("another state", config_.etcd->url);
  } else if (read.state_dir.empty()) {
    return refuse("no state-dir", config_.state_dir);
  } else if (!IsSamePath(read.state_dir, config_.state_dir)) {
    return refuse(absl::StrCat("state-dir = '", read.state_dir, "'"), config_.state_dir);
  }
  if (sockets_given_ || read.listen == config_.listen) return absl::OkStatus();
  return refuse(absl::StrCat("listen = '", ToString(read.listen), "'"), ToString(config_.listen));
}

std::vector<std::string> ReloadableConfig::ArgvOf(const ServerConfig& config) const {
  std::vector<std::string> argv = {argv_.front()};
  const auto add = [&argv](const char* flag, const std::string& value) {
    if (!value.empty()) argv.push_back(absl::StrCat(flag, "=", value));
  };
  add("--listen", ToString(config.listen));
  add("--state-dir", config.state_dir);
  if (config.etcd) {
    add("--state", config.etcd->url);
    add("--etcd-ca", config.etcd->authority);
    add("--etcd-cert", config.etcd->certificate);
    add("--etcd-key", config.etcd->key);
    add("--etcd-user", config.etcd->user);
    add("--etcd-password-file", config.etcd->password_file);
  }
  add("--log-level", config.log_level);
  if (config.http) add("--http", ToString(*config.http));
  add("--tokens", config.tokens);
  // With the tenants' tokens there is no other way in.
  if (!config.tokens.empty()) return argv;
  if (config.token.insecure) argv.push_back("--insecure");
  add("--token-file", config.token.file);
  add("--tls-ca", config.token.tls.ca);
  add("--tls-cert", config.token.tls.certificate);
  add("--tls-key", config.token.tls.key);
  return argv;
}

absl::StatusOr<Credentials> CredentialsFor(const ServerConfig& config, Keyring::Trouble trouble) {
  if (config.tokens.empty()) {
    return FindCredentials(config.token, config.listen, Role::kDaemon, std::move(trouble));
  }
  auto tenants = Keyring::OfDirectory(config.tokens, std::move(trouble), limits::kTenants.most);
  if (!tenants.ok()) return tenants.status();
  return Credentials::FromKeyring(*std::move(tenants), Role::kDaemon);
}

}  // namespace muster::rendezvous
