// Files that hold a token.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rendezvous/identity/token.h"

namespace muster::rendezvous {

// All of these may wait for a disk or a network file system. An error is one sentence that names
// the file, and says nothing of what it holds.

// NotFound when there is no such file. FailedPrecondition when it is not a regular file, belongs to
// another user than this one or root, or can be read or written by others; its message says what to
// do about it. A group of this process's that root lets read its file, and not write, is none of
// the others: so Kubernetes gives secrets to pods that do not run as root. A symbolic link is
// followed unless it is another user's (base/safe_path.h): Kubernetes mounts secrets as links.
absl::StatusOr<Token> ReadTokenFile(const std::string& path);

// What a token file holds: the token, and after a change the one before it for as long as agents
// that still have that one are let in.
struct TokenFile {
  Token token;
  std::optional<Token> former = std::nullopt;
  absl::Time former_until = absl::InfinitePast();

  // A line each: "HEX" and "former HEX until 2026-11-24T18:00:00Z".
  std::string Text() const;
  // The error's message is a phrase that follows the name of where the text is from.
  static absl::StatusOr<TokenFile> Parse(absl::string_view text);
};

// As ReadTokenFile, which returns its first line.
absl::StatusOr<TokenFile> ReadTokens(const std::string& path);

// Replaces the token in the file, which goes on counting until `former_until`, by a new one; at any
// time the file is either as before or as after. One that has been replaced before and still counts
// does not from now on. Errors as ReadTokens.
absl::Status RotateTokenFile(const std::string& path, absl::Time former_until);

// What can be read from the descriptor until its end, which is then closed. The descriptor must not
// be one that this process needs.
absl::StatusOr<Token> ReadTokenFd(int fd);

// Makes the file, mode 0600, with the folder it is in, mode 0700, where that is missing. It is
// there whole or not at all, and one that is there already is never changed: AlreadyExists.
absl::Status WriteTokenFile(const std::string& path, const Token& token);

// The token in the file, which is made first if it is missing. Processes that do so at once, also
// on different nodes over a network file system, get the same token.
absl::StatusOr<Token> ReadOrMakeTokenFile(const std::string& path);

}  // namespace muster::rendezvous
