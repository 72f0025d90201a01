#include "rendezvous/etcd_config.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/failure.h"
#include "rendezvous/net/endpoint.h"

namespace muster::rendezvous {
namespace {

constexpr std::uint16_t kPort = 2379;

absl::Status ReadFile(const std::string& path, std::string& text) {
  if (path.empty()) return absl::OkStatus();
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return base::SystemFailure(absl::StatusCode::kInvalidArgument, "read", path, EISDIR);
  }
  std::ifstream file(path, std::ios::binary);
  text.assign(std::istreambuf_iterator<char>(file), {});
  if (!file.good() && !file.eof()) {
    return base::SystemFailure(absl::StatusCode::kInvalidArgument, "read", path, errno);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EtcdConfig> ParseEtcdUrl(absl::string_view url) {
  EtcdConfig config{.url = std::string(url)};
  if (!absl::ConsumePrefix(&url, "etcd://")) {
    return absl::InvalidArgumentError(
        "is not etcd://HOST:PORT,HOST:PORT/PATH; a directory is named with --state-dir");
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(url, absl::MaxSplits('/', 1));
  for (const absl::string_view member : absl::StrSplit(parts.first, ',')) {
    const auto endpoint = ParseEndpoint(member, kPort);
    if (!endpoint.ok() || endpoint->port == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("names '", member, "', which is no HOST:PORT of a member of etcd"));
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
        "--etcd-cert is for encrypted connections; name the authority of etcd's certificates with "
        "--etcd-ca");
  }
  if (config.user.empty() != config.password_file.empty()) {
    return absl::InvalidArgumentError(
        "--etcd-user and --etcd-password-file go together; name both");
  }
  return absl::OkStatus();
}

absl::StatusOr<etcd::EtcdOptions> ReadEtcdOptions(const EtcdConfig& config) {
  etcd::EtcdOptions options{.members = config.members, .user = config.user};
  const std::pair<const std::string&, std::string&> files[] = {
      {config.authority, options.authority},
      {config.certificate, options.certificate},
      {config.key, options.key},
      {config.password_file, options.password}};
  for (const auto& [path, text] : files) {
    if (absl::Status read = ReadFile(path, text); !read.ok()) return read;
  }
  absl::StripAsciiWhitespace(&options.password);
  return options;
}

}  // namespace muster::rendezvous
