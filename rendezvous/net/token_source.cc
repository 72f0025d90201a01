#include "rendezvous/net/token_source.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <openssl/crypto.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "rendezvous/identity/token_file.h"

namespace muster::rendezvous {
namespace {

// The XDG base directory specification takes absolute paths alone.
std::string OwnFile(absl::FunctionRef<std::string(const char*)> variable) {
  const std::string config = variable("XDG_CONFIG_HOME");
  if (config.starts_with('/')) return absl::StrCat(config, "/muster/token");
  const std::string home = variable("HOME");
  return home.starts_with('/') ? absl::StrCat(home, "/.config/muster/token") : "";
}

// Where the file is, or would be made.
bool IsOnSharedFileSystem(std::string path) {
  while (!path.empty()) {
    struct statfs system = {};
    if (::statfs(path.c_str(), &system) == 0) return IsSharedAmongMachines(system.f_type);
    path.resize(path.rfind('/'));
  }
  return false;
}

absl::Status NoPlace() {
  return absl::FailedPreconditionError(
      "no token for the rendezvous: none is given, and with neither XDG_CONFIG_HOME nor HOME there "
      "is no place for one; name a file with --token-file (`muster token new FILE` makes one)");
}

absl::Status NoToken(const std::string& own_file, const Endpoint& endpoint) {
  return absl::FailedPreconditionError(absl::StrCat(
      "no token for the rendezvous at ", ToString(endpoint),
      ", which other machines can reach: make one with `muster token new` and copy ", own_file,
      " to every node, or name its file with --token-file; on a network whose every host and user "
      "you trust, --insecure goes without"));
}

absl::Status Contradiction(const char* one, const char* other, const char* remedy) {
  return absl::InvalidArgumentError(absl::StrCat(
      one, " and ", other, " are different ways to meet the rendezvous; ", remedy, " one of them"));
}

absl::StatusOr<Keyring> FindKeyring(const TokenSource& source, const Endpoint& endpoint,
                                    Keyring::Trouble trouble) {
  if (source.fd >= 0) {
    const absl::StatusOr<Token> token = ReadTokenFd(source.fd);
    if (!token.ok()) return token.status();
    return Keyring::Of(*token);
  }
  if (!source.file.empty()) return Keyring::OfFile(source.file, std::move(trouble));
  if (source.own_file.empty()) return NoPlace();
  if (IsLoopbackLiteral(endpoint.host) || IsOnSharedFileSystem(source.own_file)) {
    const absl::StatusOr<Token> made = ReadOrMakeTokenFile(source.own_file);
    if (!made.ok()) return made.status();
  }
  absl::StatusOr<Keyring> keyring = Keyring::OfFile(source.own_file, std::move(trouble));
  if (absl::IsNotFound(keyring.status())) return NoToken(source.own_file, endpoint);
  return keyring;
}

}  // namespace

absl::StatusOr<int> ReadTokenFdNumber(absl::string_view text) {
  int fd = -1;
  // Standard input and output are others'.
  if (!absl::SimpleAtoi(text, &fd) || fd <= STDERR_FILENO || ::fcntl(fd, F_GETFD) < 0) {
    return absl::InvalidArgumentError(
        "is not the number of an open file descriptor from 3 up, as in `--token-fd=3 3<FILE`");
  }
  return fd;
}

absl::StatusOr<TokenSource> CompleteTokenSource(
    TokenSource given, absl::FunctionRef<std::string(const char*)> variable) {
  // The ways to say it, of which only one may be used.
  std::vector<const char*> flags;
  if (given.insecure) flags.push_back("--insecure");
  if (!given.file.empty()) flags.push_back("--token-file");
  if (given.fd >= 0) flags.push_back("--token-fd");
  if (!given.tls.empty()) flags.push_back("--tls-ca, --tls-cert and --tls-key");
  if (flags.size() > 1) return Contradiction(flags[0], flags[1], "drop");
  given.own_file = OwnFile(variable);
  if (flags.empty()) {
    given.file = variable(kTokenFileVariable);
    given.tls = {variable(kTlsCaVariable), variable(kTlsCertVariable), variable(kTlsKeyVariable)};
    const std::string insecure = variable(kInsecureVariable);
    if (!insecure.empty() && insecure != "0" && insecure != "1") {
      return absl::InvalidArgumentError(absl::StrCat("environment variable ", kInsecureVariable,
                                                     "=", insecure, " is neither 1 nor 0"));
    }
    given.insecure = insecure == "1";
    std::vector<const char*> variables;
    if (given.insecure) variables.push_back("MUSTER_INSECURE=1");
    if (!given.file.empty()) variables.push_back(kTokenFileVariable);
    if (!given.tls.empty())
      variables.push_back("MUSTER_TLS_CA, MUSTER_TLS_CERT and MUSTER_TLS_KEY");
    if (variables.size() > 1) return Contradiction(variables[0], variables[1], "unset");
  }
  if (!given.tls.empty() &&
      (given.tls.ca.empty() || given.tls.certificate.empty() || given.tls.key.empty())) {
    return absl::InvalidArgumentError(
        "certificates of a site's own take three files: --tls-ca (who is trusted), --tls-cert and "
        "--tls-key (what this end shows), or MUSTER_TLS_CA, MUSTER_TLS_CERT and MUSTER_TLS_KEY; "
        "give all of them");
  }
  return given;
}

absl::StatusOr<Credentials> FindCredentials(const TokenSource& source, const Endpoint& endpoint,
                                            Role role, Keyring::Trouble trouble) {
  if (source.insecure) return Credentials::Plaintext();
  // Before OpenSSL is used at all: it would clean up when the process exits, in the middle of the
  // handshakes of gRPC's threads, which nobody waits for.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  if (!source.tls.empty()) {
    auto certificates = SiteCertificates::Load(source.tls, std::move(trouble));
    if (!certificates.ok()) return certificates.status();
    return Credentials::FromSite(*std::move(certificates));
  }
  auto keyring = FindKeyring(source, endpoint, std::move(trouble));
  if (!keyring.ok()) return keyring.status();
  return Credentials::FromKeyring(*std::move(keyring), role);
}

std::string WhyNotOverHttp(const Endpoint& at, const TokenSource& source) {
  if (source.insecure) return "";
  if (!source.tls.empty()) {
    return "asks for a token, and with --tls-cert there is none; leave one of them out";
  }
  if (IsLoopbackLiteral(at.host)) return "";
  return "would have tokens sent over the network unencrypted; name a loopback address, and let a "
         "proxy that speaks TLS stand before it";
}

bool IsSharedAmongMachines(long file_system_type) {
  // Those that linux/magic.h does not have: the modules' own (Lustre, GPFS, BeeGFS).
  constexpr long kLustre = 0x0bd00bd0, kGpfs = 0x47504653, kBeegfs = 0x19830326;
  constexpr std::array<long, 11> kShared = {
      NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC, CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC,
      CEPH_SUPER_MAGIC, AFS_SUPER_MAGIC, AFS_FS_MAGIC,     OCFS2_SUPER_MAGIC,
      kLustre,          kGpfs,           kBeegfs};
  return std::find(kShared.begin(), kShared.end(), file_system_type) != kShared.end();
}

}  // namespace muster::rendezvous
