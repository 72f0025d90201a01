// What a musterd's command line says of the etcd that holds its jobs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/etcd/etcd.h"

namespace muster::rendezvous {

struct EtcdConfig {
  // As --state named it: "etcd://h1:2379,h2:2379/muster".
  std::string url;
  std::vector<std::string> members;  // "HOST:PORT"
  std::string root;                  // "/muster": what all keys begin with
  // Files, in PEM; --etcd-ca, --etcd-cert, --etcd-key.
  std::string authority;
  std::string certificate;
  std::string key;
  // --etcd-user, --etcd-password-file.
  std::string user;
  std::string password_file;

  bool operator==(const EtcdConfig&) const = default;
};

// etcd's own port.
inline constexpr char kEtcdPort[] = "2379";

// Reads "etcd://HOST[:PORT][,...][/PATH]"; without a path it is /muster. An error's message is a
// phrase that follows the text (WithoutUser): "is not ...".
absl::StatusOr<EtcdConfig> ParseEtcdUrl(absl::string_view url);
// For messages: what such a text has before an '@' may be a password, and is left out.
std::string WithoutUser(absl::string_view url);

// What is wrong with what goes together; one sentence.
absl::Status CheckEtcdConfig(const EtcdConfig& config);

// Reads the files, which the options' own `reread` does again. Errors are one sentence.
absl::StatusOr<etcd::EtcdOptions> ReadEtcdOptions(const EtcdConfig& config);

}  // namespace muster::rendezvous
