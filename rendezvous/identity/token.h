// The secret shared by the nodes, the daemon and the tools of one user or team.
#pragma once

#include <sys/stat.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::rendezvous {

// 256 random bits. Their holders may join, read and end every job that was started with them;
// everything else about identities is derived (authority.h). Overwritten in memory on destruction.
class Token {
 public:
  static constexpr std::size_t kBytes = 32;

  // From the kernel's random number generator; aborts if that fails.
  static Token Random();

  // Parses the output of Text; ignores surrounding white space. An error message is a phrase that
  // continues after the source's name: "holds no token: ...". It shows nothing of the text, which
  // may be another kind of secret.
  static absl::StatusOr<Token> Parse(absl::string_view text);

  Token(const Token&) = default;
  Token& operator=(const Token&) = default;
  ~Token();

  // 64 hexadecimal digits and a line feed: the contents of a token file. Show it only on explicit
  // request.
  std::string Text() const;

  const std::array<unsigned char, kBytes>& bytes() const { return bytes_; }

  // Another token, derived from this one and from which this one cannot be computed: its holders
  // may look at jobs (Role::kMetrics) and do nothing else. HKDF-SHA256 (RFC 5869) with a label.
  Token ForMetrics() const;

  // Identifies this token without revealing it. HKDF-SHA256 with its own label: some microseconds,
  // where an authority takes a third of a millisecond.
  std::array<unsigned char, kBytes> Fingerprint() const;

  bool operator==(const Token&) const = default;

 private:
  Token() = default;

  std::array<unsigned char, kBytes> bytes_{};
};

// Secrets derived from a token.

// HKDF-SHA256 (RFC 5869) of `secret`, without a salt, as it is a key already. Results for different
// labels are independent. The caller overwrites the result.
std::array<unsigned char, 32> Derive(const std::array<unsigned char, 32>& secret,
                                     absl::string_view label);

// Files that hold a token.

// All of these may wait for a disk or a network file system. An error is one sentence that names
// the file and says nothing of its contents.

// NotFound if there is no such file. FailedPrecondition if it is not a regular file, belongs to a
// user other than this one or root, or can be read or written by others; the message says how to
// fix it. A group of this process that root lets read, and not write, its file does not count as
// others: so Kubernetes gives secrets to pods that do not run as root. A symbolic link is followed
// unless it is another user's (base/safe_path.h): Kubernetes mounts secrets as links.
absl::StatusOr<Token> ReadTokenFile(const std::string& path);

// A replaced token, and until when its holders are admitted.
struct FormerToken {
  Token token;
  absl::Time until;

  bool operator==(const FormerToken&) const = default;
};

// The contents of a token file: the token, and former ones that are still accepted.
struct TokenFile {
  // The most former tokens: a daemon makes keys for each.
  static constexpr std::size_t kMostFormer = 16;

  Token token;
  std::vector<FormerToken> former{};  // latest first

  // One line each: "HEX" and "former HEX until 2026-11-24T18:00:00Z".
  std::string Text() const;
  // The error message is a phrase that continues after the source's name.
  static absl::StatusOr<TokenFile> Parse(absl::string_view text);
};

// As ReadTokenFile, which returns the current token.
absl::StatusOr<TokenFile> ReadTokens(const std::string& path);

// Replaces the token in the file by a new one; the old one stays valid until `former_until`.
// Returns the file's new contents. Atomic. Earlier former tokens keep their own end; but if
// `former_until` is not in the future, all former tokens end now. Concurrent calls in other
// processes take turns. Errors as ReadTokens; ResourceExhausted if too many former tokens are still
// valid.
absl::StatusOr<TokenFile> RotateTokenFile(const std::string& path, absl::Time former_until);

// Reads the token from the descriptor up to its end, then closes it. The descriptor must not be one
// that this process needs.
absl::StatusOr<Token> ReadTokenFd(int fd);

// Creates the file, mode 0600, and its folder, mode 0700, if missing. Atomic, and never changes an
// existing file: AlreadyExists.
absl::Status WriteTokenFile(const std::string& path, const Token& token);

// The token in the file, which is created first if missing. Concurrent processes, also on different
// nodes over a network file system, get the same token.
absl::StatusOr<Token> ReadOrMakeTokenFile(const std::string& path);

// Tells whether a file is still the one that was read.

// Changes when the name leads to another file, or the file has been written or has changed its
// owner.
struct FileStamp {
  dev_t device = 0;
  ino_t number = 0;
  off_t size = -1;
  std::int64_t changed_ns = 0;

  bool operator==(const FileStamp&) const = default;
};

// For a missing file: a default FileStamp.
inline FileStamp StampOf(const std::string& path) {
  struct stat file = {};
  if (::stat(path.c_str(), &file) != 0) return {};
  return {file.st_dev, file.st_ino, file.st_size,
          file.st_ctim.tv_sec * std::int64_t{1'000'000'000} + file.st_ctim.tv_nsec};
}

}  // namespace muster::rendezvous
