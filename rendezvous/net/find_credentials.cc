#include "rendezvous/net/find_credentials.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>
#include <vector>

#include <openssl/crypto.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "rendezvous/identity/token.h"

namespace muster::rendezvous {
namespace {

// The XDG base directory specification ignores relative paths.
std::string OwnFile(absl::FunctionRef<std::string(const char*)> variable) {
  const std::string config = variable("XDG_CONFIG_HOME");
  if (config.starts_with('/')) return absl::StrCat(config, "/muster/token");
  const std::string home = variable("HOME");
  return home.starts_with('/') ? absl::StrCat(home, "/.config/muster/token") : "";
}

// Looks at the file, or the closest folder above it that exists.
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
      "no token for the rendezvous: none is given, and with neither XDG_CONFIG_HOME nor HOME set "
      "there is no default place for one; name a file with --token-file (`muster token new FILE` "
      "creates one)");
}

// Whether the file exists, or can be created without creating the user's home.
bool HasHome(const std::string& own_file) {
  if (own_file.empty()) return false;
  // The home is above HOME/.config/muster/token, or above $XDG_CONFIG_HOME.
  const std::filesystem::path home =
      std::filesystem::path(own_file).parent_path().parent_path().parent_path();
  return ::access(home.c_str(), F_OK) == 0;
}

// The file that the user's processes on this machine share; created if missing.
absl::StatusOr<std::string> FileOfMachine(const base::UserPlace& place) {
  const auto file_in = [](const std::string& folder) { return absl::StrCat(folder, "/token"); };
  for (const std::string& folder : base::UserFolders(place)) {
    const absl::Status found = ReadTokenFile(file_in(folder)).status();
    if (found.ok()) return file_in(folder);
  }
  absl::Status why;
  for (const std::string& folder : base::FoldersForOne(place)) {
    const absl::Status made = ReadOrMakeTokenFile(file_in(folder)).status();
    if (made.ok()) return file_in(folder);
    why.Update(made);
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "no token for the rendezvous: none is given, there is no home directory for "
      "one, and no folder of this user's on this machine (",
      why.message(), "); name a file with --token-file (`muster token new FILE` makes one)"));
}

// The token file of a rendezvous on loopback.
absl::StatusOr<std::string> FileForLoopback(const TokenSource& source) {
  if (HasHome(source.own_file)) {
    const absl::Status made = ReadOrMakeTokenFile(source.own_file).status();
    // If the file exists and is unusable, the user has to fix it.
    struct stat info = {};
    if (made.ok() || ::lstat(source.own_file.c_str(), &info) == 0) {
      return made.ok() ? absl::StatusOr<std::string>(source.own_file) : made;
    }
  }
  return FileOfMachine(source.place);
}

absl::Status NoToken(const std::string& own_file, const Endpoint& endpoint) {
  return absl::FailedPreconditionError(absl::StrCat(
      "no token for the rendezvous at ", ToString(endpoint),
      ", which other machines can reach: make one with `muster token new` and copy ", own_file,
      " to every node, or name its file with --token-file; on a network where you trust every host "
      "and user, --insecure needs none"));
}

absl::Status Contradiction(const char* one, const char* other, const char* remedy) {
  return absl::InvalidArgumentError(
      absl::StrCat(one, " and ", other, " exclude each other; ", remedy, " one of them"));
}

}  // namespace

absl::StatusOr<int> ReadTokenFdNumber(absl::string_view text) {
  int fd = -1;
  // 0 to 2 are standard streams.
  if (!absl::SimpleAtoi(text, &fd) || fd <= STDERR_FILENO || ::fcntl(fd, F_GETFD) < 0) {
    return absl::InvalidArgumentError(
        "is not an open file descriptor of 3 or above, as in `--token-fd=3 3<FILE`");
  }
  return fd;
}

absl::StatusOr<TokenSource> CompleteTokenSource(
    TokenSource given, absl::FunctionRef<std::string(const char*)> variable) {
  // The alternatives, of which only one may be used.
  std::vector<const char*> flags;
  if (given.insecure) flags.push_back("--insecure");
  if (!given.file.empty()) flags.push_back("--token-file");
  if (given.fd >= 0) flags.push_back("--token-fd");
  if (!given.tls.empty()) flags.push_back("--tls-ca, --tls-cert and --tls-key");
  if (flags.size() > 1) return Contradiction(flags[0], flags[1], "drop");
  given.own_file = OwnFile(variable);
  given.place = base::UserPlaceOf(variable);
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

absl::StatusOr<std::string> FindTokenFile(const TokenSource& source, const Endpoint& endpoint) {
  if (!source.file.empty()) return source.file;
  if (IsLoopbackLiteral(endpoint.host)) return FileForLoopback(source);
  if (source.own_file.empty()) return NoPlace();
  if (IsOnSharedFileSystem(source.own_file)) {
    const absl::Status made = ReadOrMakeTokenFile(source.own_file).status();
    if (!made.ok()) return made;
  }
  return source.own_file;
}

absl::StatusOr<Credentials> FindCredentials(const TokenSource& source, const Endpoint& endpoint,
                                            Role role, Keyring::Trouble trouble) {
  if (source.insecure) return Credentials::Plaintext();
  // Before any other use of OpenSSL: its exit handler would run during handshakes on gRPC's
  // threads, which are not joined.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  if (!source.tls.empty()) {
    auto certificates = SiteCertificates::Load(
        source.tls, std::move(trouble),
        role == Role::kDaemon ? CertificateUse::kServer : CertificateUse::kClient);
    if (!certificates.ok()) return certificates.status();
    return Credentials::FromSite(*std::move(certificates));
  }
  if (source.fd >= 0) {
    const absl::StatusOr<Token> token = ReadTokenFd(source.fd);
    if (!token.ok()) return token.status();
    return Credentials::FromToken(*token, role);
  }
  const absl::StatusOr<std::string> file = FindTokenFile(source, endpoint);
  if (!file.ok()) return file.status();
  auto keyring = Keyring::OfFile(*file, std::move(trouble));
  if (absl::IsNotFound(keyring.status()) && source.file.empty()) return NoToken(*file, endpoint);
  if (!keyring.ok()) return keyring.status();
  return Credentials::FromKeyring(*std::move(keyring), role);
}

std::string WhyNotOverHttp(const Endpoint& at, const TokenSource& source) {
  if (source.insecure) return "";
  if (!source.tls.empty()) {
    return "asks for a token, and with --tls-cert there is none; leave one of them out";
  }
  if (IsLoopbackLiteral(at.host)) return "";
  return "would send tokens over the network unencrypted; use a loopback address behind a TLS "
         "proxy";
}

bool IsSharedAmongMachines(long file_system_type) {
  // Not in linux/magic.h: the modules' own (Lustre, GPFS, BeeGFS).
  constexpr long kLustre = 0x0bd00bd0, kGpfs = 0x47504653, kBeegfs = 0x19830326;
  constexpr std::array<long, 11> kShared = {
      NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC, CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC,
      CEPH_SUPER_MAGIC, AFS_SUPER_MAGIC, AFS_FS_MAGIC,     OCFS2_SUPER_MAGIC,
      kLustre,          kGpfs,           kBeegfs};
  return std::find(kShared.begin(), kShared.end(), file_system_type) != kShared.end();
}

}  // namespace muster::rendezvous
