// Finds the credentials that flags, environment and files give, and makes them where there are
// none.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/identity/keyring.h"
#include "rendezvous/identity/token_source.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"

namespace muster::rendezvous {

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
