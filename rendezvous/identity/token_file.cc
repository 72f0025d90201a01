#include "rendezvous/identity/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include <openssl/crypto.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/failure.h"
#include "base/random_name.h"
#include "base/safe_path.h"
#include "base/unique_fd.h"

namespace muster::rendezvous {
namespace {

constexpr char kRead[] = "read token file";
constexpr char kMake[] = "make token file";

absl::Status ReadFailure(const std::string& path, int error = errno) {
  const auto code =
      error == ENOENT ? absl::StatusCode::kNotFound : absl::StatusCode::kFailedPrecondition;
  return base::SystemFailure(code, kRead, path, error);
}

absl::Status MakeFailure(const std::string& path, int error = errno) {
  return base::SystemFailure(absl::StatusCode::kFailedPrecondition, kMake, path, error);
}

// What base/safe_path.h says of the file or its folder.
absl::Status Wrong(const char* attempt, const std::string& path, const absl::Status& status) {
  const auto code = absl::IsNotFound(status) ? absl::StatusCode::kNotFound
                                             : absl::StatusCode::kFailedPrecondition;
  return base::Failure(code, attempt, path, status.message());
}

absl::Status Unfit(const std::string& path, absl::string_view why) {
  return base::Failure(absl::StatusCode::kFailedPrecondition, kRead, path, why);
}

// Root lets a group that this process is in read it, as Kubernetes does for a pod that does not run
// as root (fsGroup), and nobody else.
bool IsLentByRoot(const struct stat& file) {
  return file.st_uid == 0 && ::geteuid() != 0 && (file.st_mode & 037) == 0 &&
         (file.st_gid == ::getegid() || ::group_member(file.st_gid) != 0);
}

// Whether nobody but its owner, this user or root, could have read or written it.
absl::Status CheckPrivate(int fd, const std::string& path) {
  struct stat file = {};
  if (::fstat(fd, &file) != 0) return ReadFailure(path);
  if (!S_ISREG(file.st_mode)) return Unfit(path, "it is not a regular file");
  if (file.st_uid != ::geteuid() && file.st_uid != 0) {
    return Unfit(path, absl::StrCat("it belongs to the user with id ", file.st_uid,
                                    ", who can read and change it; make one of your own with "
                                    "`muster token new`"));
  }
  if ((file.st_mode & 077) != 0 && !IsLentByRoot(file)) {
    return Unfit(path, absl::StrCat("other users can read or change it; if none has, "
                                    "`chmod 600 ",
                                    path, "`, else make a new one with `muster token new`"));
  }
  return absl::OkStatus();
}

// The tokens that the descriptor leads to; `name` is for errors.
absl::StatusOr<TokenFile> ReadAll(int fd, const std::string& name) {
  // More than two tokens, a date and white space are none.
  std::array<char, 256> text;
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ReadFailure(name);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  absl::StatusOr<TokenFile> tokens = TokenFile::Parse({text.data(), size});
  OPENSSL_cleanse(text.data(), text.size());
  if (tokens.ok()) return tokens;
  return Unfit(name, absl::StrCat("it ", tokens.status().message()));
}

bool WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Removes what is there under this name; errno stays.
void Remove(const base::Spot& spot, const std::string& name) {
  const int error = errno;
  ::unlinkat(spot.directory.get(), name.c_str(), 0);
  errno = error;
}

// A file of this text beside the one at `spot`, for this user alone; its name. `path` is for
// errors.
absl::StatusOr<std::string> WriteDraft(const base::Spot& spot, const std::string& path,
                                       std::string text) {
  const std::string draft = absl::StrCat(spot.name, ".", base::RandomName(8));
  const base::UniqueFd fd(::openat(spot.directory.get(), draft.c_str(),
                                   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() < 0) return MakeFailure(path);
  const bool written = WriteAll(fd.get(), text) && ::fsync(fd.get()) == 0;
  const int error = errno;
  OPENSSL_cleanse(text.data(), text.size());
  if (written) return draft;
  Remove(spot, draft);
  return MakeFailure(path, error);
}

}  // namespace

std::string TokenFile::Text() const {
  std::string text = token.Text();
  if (!former) return text;
  const std::string old = former->Text();
  return absl::StrCat(text, "former ", absl::StripAsciiWhitespace(old), " until ",
                      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", former_until, absl::UTCTimeZone()),
                      "\n");
}

absl::StatusOr<TokenFile> TokenFile::Parse(absl::string_view text) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
  absl::StatusOr<Token> token = Token::Parse(words.size() == 5 ? words[0] : text);
  if (!token.ok()) return token.status();
  TokenFile file{.token = *std::move(token)};
  if (words.size() != 5) return file;
  absl::StatusOr<Token> former = Token::Parse(words[2]);
  if (words[1] != "former" || words[3] != "until" || !former.ok() ||
      !absl::ParseTime("%Y-%m-%dT%H:%M:%SZ", words[4], &file.former_until, nullptr)) {
    return absl::InvalidArgumentError(
        "has a second line that is not \"former TOKEN until YYYY-MM-DDThh:mm:ssZ\"; remove that "
        "line, or make a new token with `muster token new`");
  }
  file.former = *std::move(former);
  return file;
}

absl::StatusOr<TokenFile> ReadTokens(const std::string& path) {
  // Without waiting, as it may be a FIFO.
  const absl::StatusOr<base::UniqueFd> fd = base::OpenFile(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd.ok()) return Wrong(kRead, path, fd.status());
  if (const absl::Status status = CheckPrivate(fd->get(), path); !status.ok()) return status;
  return ReadAll(fd->get(), path);
}

absl::StatusOr<Token> ReadTokenFile(const std::string& path) {
  absl::StatusOr<TokenFile> tokens = ReadTokens(path);
  if (!tokens.ok()) return tokens.status();
  return tokens->token;
}

absl::StatusOr<Token> ReadTokenFd(int fd) {
  const base::UniqueFd owned(fd);
  absl::StatusOr<TokenFile> tokens = ReadAll(owned.get(), absl::StrCat("descriptor ", fd));
  if (!tokens.ok()) return tokens.status();
  return tokens->token;
}

absl::Status RotateTokenFile(const std::string& path, absl::Time former_until) {
  const absl::StatusOr<TokenFile> before = ReadTokens(path);
  if (!before.ok()) return before.status();
  // Where a link leads, or the link would be replaced.
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), &std::free);
  if (real == nullptr) return ReadFailure(path);
  const absl::StatusOr<base::Spot> spot = base::FindSpot(real.get());
  if (!spot.ok()) return Wrong(kMake, path, spot.status());
  const TokenFile after{
      .token = Token::Random(), .former = before->token, .former_until = former_until};
  const absl::StatusOr<std::string> draft = WriteDraft(*spot, path, after.Text());
  if (!draft.ok()) return draft.status();
  const int folder = spot->directory.get();
  if (::renameat(folder, draft->c_str(), folder, spot->name.c_str()) == 0) return absl::OkStatus();
  Remove(*spot, *draft);
  return MakeFailure(path);
}

absl::Status WriteTokenFile(const std::string& path, const Token& token) {
  const absl::StatusOr<base::Spot> spot = base::FindSpot(path, {.make = 0700});
  if (!spot.ok())
    return base::Failure(absl::StatusCode::kFailedPrecondition, kMake, path,
                         spot.status().message());
  // A name of its own, and then a link: rename() would replace what another has just made, and a
  // reader must never see half of it. (Over NFS, too, link() is atomic.)
  const absl::StatusOr<std::string> draft = WriteDraft(*spot, path, token.Text());
  if (!draft.ok()) return draft.status();
  const int folder = spot->directory.get();
  const int error =
      ::linkat(folder, draft->c_str(), folder, spot->name.c_str(), 0) == 0 ? 0 : errno;
  Remove(*spot, *draft);
  if (error == EEXIST) {
    return base::Failure(absl::StatusCode::kAlreadyExists, kMake, path,
                         "it is there already, and jobs may depend on it; remove it first, or name "
                         "another file");
  }
  return error == 0 ? absl::OkStatus() : MakeFailure(path, error);
}

absl::StatusOr<Token> ReadOrMakeTokenFile(const std::string& path) {
  absl::StatusOr<Token> token = ReadTokenFile(path);
  if (!absl::IsNotFound(token.status())) return token;
  const absl::Status made = WriteTokenFile(path, Token::Random());
  // Whoever was first has made it for all.
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  return ReadTokenFile(path);
}

}  // namespace muster::rendezvous
