// Where a process finds the token of its rendezvous, and what it does where there is none.
#pragma once

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/identity/keyring.h"
#include "rendezvous/identity/site_certificates.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"

namespace muster::rendezvous {

// Environment variables that stand for --token-file and --insecure.
inline constexpr char kTokenFileVariable[] = "MUSTER_TOKEN_FILE";
inline constexpr char kInsecureVariable[] = "MUSTER_INSECURE";
// And for --tls-ca, --tls-cert and --tls-key.
inline constexpr char kTlsCaVariable[] = "MUSTER_TLS_CA";
inline constexpr char kTlsCertVariable[] = "MUSTER_TLS_CERT";
inline constexpr char kTlsKeyVariable[] = "MUSTER_TLS_KEY";

// What the user says, by flags or by the environment.
struct TokenSource {
  // --token-file, MUSTER_TOKEN_FILE; empty: not given.
  std::string file;
  // --token-fd: a descriptor to read it from, once; -1: not given.
  int fd = -1;
  // --insecure, MUSTER_INSECURE=1: no token is used, and connections are not encrypted.
  bool insecure = false;
  // --tls-ca, --tls-cert, --tls-key and their variables: certificates of the site's own authority
  // instead of a token. All of them or none.
  CertificateFiles tls;
  // The user's own: $XDG_CONFIG_HOME/muster/token, else $HOME/.config/muster/token; empty: there is
  // no such place.
  std::string own_file;

  bool operator==(const TokenSource&) const = default;
};

// Reads a descriptor's number, from 3 up. An error's message is a phrase that follows the text it
// is about: "is not the number of an open descriptor; ...".
absl::StatusOr<int> ReadTokenFdNumber(absl::string_view text);

// What flags leave open, from the environment; a flag that is given counts more than any variable.
// `variable` returns the text of one, or nothing. InvalidArgument, one sentence, where flags
// contradict one another or a variable means nothing.
absl::StatusOr<TokenSource> CompleteTokenSource(
    TokenSource given, absl::FunctionRef<std::string(const char*)> variable);

// What a rendezvous at `endpoint` is met with, as `role` where that is a token; its files are
// watched for a change. In order: nothing, where the user has said so; the site's certificates; the
// token's descriptor; its file; the user's own file. Where none is given or there, the user's own
// file is made if `endpoint` is on the loopback interface, where nobody else needs it, or if the
// file is on a network file system, where the other nodes read it; otherwise that is an error.
// Errors are one sentence. May wait for a disk.
absl::StatusOr<Credentials> FindCredentials(const TokenSource& source, const Endpoint& endpoint,
                                            Role role, Keyring::Trouble trouble = {});

// Why whoever has the token cannot be shown jobs over HTTP there (rendezvous/pages), as a clause
// that follows the endpoint; empty: he can.
std::string WhyNotOverHttp(const Endpoint& at, const TokenSource& source);

// Whether files of a file system of this type (statfs, f_type) are those that other machines see.
bool IsSharedAmongMachines(long file_system_type);

}  // namespace muster::rendezvous
