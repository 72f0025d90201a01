#include "rendezvous/server_config.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/failure.h"
#include "rendezvous/identity/site_certificates.h"

namespace muster::rendezvous {
namespace {

// etcd's own.
constexpr std::uint16_t kPort = 2379;

absl::Status ReadFile(const std::string& path, std::string& text) {
  if (path.empty()) return absl::OkStatus();
  const auto failed = [&path](int error) {
    return base::SystemFailure(absl::StatusCode::kInvalidArgument, "read", path, error);
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return failed(EISDIR);
  std::ifstream file(path, std::ios::binary);
  text.assign(std::istreambuf_iterator<char>(file), {});
  if (!file.good() && !file.eof()) return failed(errno);
  // Without an authority the password would be sent in plain text.
  if (absl::StripAsciiWhitespace(text).empty()) {
    return base::Failure(absl::StatusCode::kInvalidArgument, "read", path, "it is empty");
  }
  return absl::OkStatus();
}

// Etcd closes a connection without a word for what is wrong with the certificate that it is shown,
// and gRPC says nothing of use about what it cannot read.
absl::Status CheckCertificates(const EtcdConfig& config, const etcd::EtcdCredentials& own) {
  const auto unfit = [](const std::string& file, const std::string& why) {
    return base::Failure(absl::StatusCode::kInvalidArgument, "use", file, why);
  };
  if (own.authority.empty()) return absl::OkStatus();
  const std::vector<CertificatePtr> authorities = CertificatesIn(own.authority);
  if (authorities.empty()) return unfit(config.authority, "it holds no PEM certificate");
  if (own.certificate.empty()) return absl::OkStatus();
  const std::vector<CertificatePtr> chain = CertificatesIn(own.certificate);
  if (chain.empty()) return unfit(config.certificate, "it holds no PEM certificate");
  const KeyPtr key = PrivateKeyIn(own.key);
  if (key == nullptr) {
    return unfit(config.key, "it holds no unencrypted PEM private key");
  }
  if (!IsKeyOf(*chain.front(), *key)) {
    return unfit(config.key, absl::StrCat("it is not the key of ", config.certificate));
  }
  std::string problem = DateProblem(*chain.front());
  if (problem.empty()) {
    // Etcd may have its clients' certificates signed by another authority than its own.
    problem = ProblemAnywhere(chain, authorities, CertificateUse::kClient, config.authority);
  }
  return problem.empty() ? absl::OkStatus() : unfit(config.certificate, problem);
}

absl::StatusOr<etcd::EtcdCredentials> ReadEtcdCredentials(const EtcdConfig& config) {
  etcd::EtcdCredentials credentials{.user = config.user};
  const std::pair<const std::string&, std::string&> files[] = {
      {config.authority, credentials.authority},
      {config.certificate, credentials.certificate},
      {config.key, credentials.key},
      {config.password_file, credentials.password}};
  for (const auto& [path, text] : files) {
    if (absl::Status read = ReadFile(path, text); !read.ok()) return read;
  }
  absl::StripAsciiWhitespace(&credentials.password);
  if (absl::Status fit = CheckCertificates(config, credentials); !fit.ok()) return fit;
  return credentials;
}

// Before an '@', as in other URLs. No name of a host has one, and a path that has one is rare
// enough to be refused as well: a password may have any character, '/' included.
bool NamesUser(absl::string_view url) {
  return absl::StrContains(url, '@');
}

}  // namespace

std::string WithoutUser(absl::string_view url) {
  if (!NamesUser(url)) return std::string(url);
  const std::size_t scheme = url.find("://");
  const absl::string_view before =
      scheme == absl::string_view::npos ? "" : url.substr(0, scheme + 3);
  return absl::StrCat(before, "...", url.substr(url.rfind('@')));
}

absl::StatusOr<EtcdConfig> ParseEtcdUrl(absl::string_view url) {
  EtcdConfig config{.url = std::string(url)};
  if (!absl::ConsumePrefix(&url, "etcd://")) {
    return absl::InvalidArgumentError(
        "is not etcd://HOST:PORT,HOST:PORT/PATH; a directory is named with --state-dir");
  }
  if (NamesUser(url)) {
    return absl::InvalidArgumentError(
        "names a user; that is for --etcd-user, and the password for --etcd-password-file");
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(url, absl::MaxSplits('/', 1));
  for (const absl::string_view member : absl::StrSplit(parts.first, ',')) {
    const auto endpoint = ParseEndpoint(member, kPort);
    if (!endpoint.ok() || endpoint->port == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("names '", member, "', which is not the HOST:PORT of an etcd member"));
    }
    config.members.push_back(ToString(*endpoint));
  }
  absl::string_view path = parts.second;
  while (absl::ConsumeSuffix(&path, "/")) {
  }
  config.root = path.empty() ? "/muster" : absl::StrCat("/", path);
  return config;
}

absl::Status CheckEtcdConfig(const EtcdConfig& config) {
  if (config.certificate.empty() != config.key.empty()) {
    return absl::InvalidArgumentError("--etcd-cert and --etcd-key go together; name both");
  }
  if (config.authority.empty() && !config.certificate.empty()) {
    return absl::InvalidArgumentError(
        "--etcd-cert needs an encrypted connection; name the authority of etcd's certificates with "
        "--etcd-ca");
  }
  if (config.user.empty() != config.password_file.empty()) {
    return absl::InvalidArgumentError(
        "--etcd-user and --etcd-password-file go together; name both");
  }
  return absl::OkStatus();
}

absl::StatusOr<etcd::EtcdOptions> ReadEtcdOptions(const EtcdConfig& config) {
  auto credentials = ReadEtcdCredentials(config);
  if (!credentials.ok()) return credentials.status();
  return etcd::EtcdOptions{.members = config.members,
                           .credentials = *std::move(credentials),
                           .reread = [config] { return ReadEtcdCredentials(config); }};
}

}  // namespace muster::rendezvous
