// Where a process finds the token of its rendezvous, and what it does if there is none.
#pragma once

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/safe_path.h"
#include "rendezvous/identity/keyring.h"
#include "rendezvous/identity/site_certificates.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"

namespace muster::rendezvous {

// Environment variables in place of --token-file and --insecure.
inline constexpr char kTokenFileVariable[] = "MUSTER_TOKEN_FILE";
inline constexpr char kInsecureVariable[] = "MUSTER_INSECURE";
// And of --tls-ca, --tls-cert and --tls-key.
inline constexpr char kTlsCaVariable[] = "MUSTER_TLS_CA";
inline constexpr char kTlsCertVariable[] = "MUSTER_TLS_CERT";
inline constexpr char kTlsKeyVariable[] = "MUSTER_TLS_KEY";

// The user's choice, by flags or environment.
struct TokenSource {
  // --token-file, MUSTER_TOKEN_FILE; empty: not given.
  std::string file;
  // --token-fd: a descriptor from which the token is read once; -1: not given.
  int fd = -1;
  // --insecure, MUSTER_INSECURE=1: no token is used, and connections are not encrypted.
  bool insecure = false;
  // --tls-ca, --tls-cert, --tls-key and their variables: certificates of the site's own authority
  // instead of a token. All of them or none.
  CertificateFiles tls;
  // The user's own file: $XDG_CONFIG_HOME/muster/token, else $HOME/.config/muster/token; empty:
  // neither is possible.
  std::string own_file;
  // Where the user's processes on this machine meet. On loopback the token is in one of these
  // folders if `own_file` cannot be used: a container often has no home.
  base::UserPlace place;

  bool operator==(const TokenSource&) const = default;
};

// Reads a descriptor's number, at least 3. An error message is a phrase that continues after the
// text: "is not the number of an open descriptor; ...".
absl::StatusOr<int> ReadTokenFdNumber(absl::string_view text);

// Fills in from the environment what flags leave open; flags take precedence. `variable` returns a
// variable's text, or nothing. InvalidArgument, one sentence, if flags contradict one another or a
// variable is malformed.
absl::StatusOr<TokenSource> CompleteTokenSource(
    TokenSource given, absl::FunctionRef<std::string(const char*)> variable);

// The token file for a rendezvous at `endpoint`, unless a descriptor is given: the named file, or
// else the user's own. The user's own file is created if `endpoint` is on loopback, where no one
// else needs it, or if the file is on a network file system, where the other nodes can read it. If
// it cannot be created because HOME is unset, missing or read-only, a rendezvous on loopback uses
// one in `source.place`. Errors are one sentence. May wait for a disk.
absl::StatusOr<std::string> FindTokenFile(const TokenSource& source, const Endpoint& endpoint);

// The credentials for a rendezvous at `endpoint`; with a token they are those of `role`, and its
// files are watched for changes. In order: none, if the user said so; the site's certificates; the
// token from the descriptor; the token file, as above. Errors are one sentence. May wait for a
// disk.
absl::StatusOr<Credentials> FindCredentials(const TokenSource& source, const Endpoint& endpoint,
                                            Role role, Keyring::Trouble trouble = {});

// Why a token holder cannot see jobs over HTTP there (rendezvous/pages), as a clause that follows
// the endpoint; empty: it can.
std::string WhyNotOverHttp(const Endpoint& at, const TokenSource& source);

// Whether other machines see the files of this file system type (statfs, f_type).
bool IsSharedAmongMachines(long file_system_type);

}  // namespace muster::rendezvous
