#include "rendezvous/identity/token.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <utility>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

#include "base/failure.h"
#include "base/safe_path.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace muster::rendezvous {

Token Token::Random() {
  Token token;
  if (::getentropy(token.bytes_.data(), token.bytes_.size()) != 0) std::abort();
  return token;
}

absl::StatusOr<Token> Token::Parse(absl::string_view text) {
  const absl::string_view digits = absl::StripAsciiWhitespace(text);
  const bool is_token = digits.size() == 2 * kBytes &&
                        std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit);
  if (!is_token) {
    return absl::InvalidArgumentError(
        absl::StrCat("holds no token, which is ", 2 * kBytes,
                     " hexadecimal digits; make one with `muster token new`"));
  }
  std::string bytes = absl::HexStringToBytes(digits);
  Token token;
  std::copy(bytes.begin(), bytes.end(), token.bytes_.begin());
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return token;
}

Token Token::ForMetrics() const {
  Token token;
  token.bytes_ = Derive(bytes_, "muster metrics token v1");
  return token;
}

std::array<unsigned char, Token::kBytes> Token::Fingerprint() const {
  return Derive(bytes_, "muster token fingerprint v1");
}

Token::~Token() {
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
}

std::string Token::Text() const {
  const absl::string_view bytes(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  return absl::StrCat(absl::BytesToHexString(bytes), "\n");
}

std::array<unsigned char, 32> Derive(const std::array<unsigned char, 32>& secret,
                                     absl::string_view label) {
  const std::unique_ptr<EVP_KDF, void (*)(EVP_KDF*)> kdf(
      EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_HKDF, nullptr), &EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, void (*)(EVP_KDF_CTX*)> context(EVP_KDF_CTX_new(kdf.get()),
                                                                     &EVP_KDF_CTX_free);
  char digest[] = "SHA256";
  std::array<unsigned char, 32> key = secret;
  std::string info(label);
  const std::array<OSSL_PARAM, 4> parameters = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key.data(), key.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
      OSSL_PARAM_construct_end()};
  std::array<unsigned char, 32> derived;
  // OpenSSL fails here only when out of memory.
  if (context == nullptr ||
      EVP_KDF_derive(context.get(), derived.data(), derived.size(), parameters.data()) != 1) {
    std::abort();
  }
  OPENSSL_cleanse(key.data(), key.size());
  return derived;
}

namespace {

constexpr char kRead[] = "read token file";
constexpr char kMake[] = "make token file";
// The format of times.
constexpr char kUntil[] = "%Y-%m-%dT%H:%M:%SZ";

absl::Status ReadFailure(const std::string& path, int error = errno) {
  const auto code =
      error == ENOENT ? absl::StatusCode::kNotFound : absl::StatusCode::kFailedPrecondition;
  return base::SystemFailure(code, kRead, path, error);
}

absl::Status MakeFailure(const std::string& path, int error = errno) {
  return base::SystemFailure(absl::StatusCode::kFailedPrecondition, kMake, path, error);
}

// Turns an error of base/safe_path.h about the file or its folder into a sentence.
absl::Status Wrong(const char* attempt, const std::string& path, const absl::Status& status) {
  const auto code = absl::IsNotFound(status) ? absl::StatusCode::kNotFound
                                             : absl::StatusCode::kFailedPrecondition;
  return base::Failure(code, attempt, path, status.message());
}

absl::Status Unfit(const std::string& path, absl::string_view why) {
  return base::Failure(absl::StatusCode::kFailedPrecondition, kRead, path, why);
}

// Root lets a group of this process read it, as Kubernetes does for a pod that does not run as root
// (fsGroup), and no one else.
bool IsLentByRoot(const struct stat& file) {
  return file.st_uid == 0 && ::geteuid() != 0 && (file.st_mode & 037) == 0 &&
         (file.st_gid == ::getegid() || ::group_member(file.st_gid) != 0);
}

// Checks that only its owner, this user or root, could have read or written it.
absl::Status CheckPrivate(int fd, const std::string& path) {
  struct stat file = {};
  if (::fstat(fd, &file) != 0) return ReadFailure(path);
  if (!S_ISREG(file.st_mode)) return Unfit(path, "it is not a regular file");
  if (file.st_uid != ::geteuid() && file.st_uid != 0) {
    return Unfit(
        path,
        absl::StrCat("it is owned by user id ", file.st_uid,
                     ", who can read and change it; create your own with `muster token new`"));
  }
  if ((file.st_mode & 077) != 0 && !IsLentByRoot(file)) {
    return Unfit(
        path, absl::StrCat("other users can read or change it; if none has, run `chmod 600 ", path,
                           "`, else make a new one with `muster token new`"));
  }
  return absl::OkStatus();
}

// The tokens read from the descriptor; `name` is for errors.
absl::StatusOr<TokenFile> ReadAll(int fd, const std::string& name) {
  // A file longer than the tokens, their dates and some white space is not a token file.
  constexpr std::size_t kLongestLine = 128;
  std::array<char, (1 + TokenFile::kMostFormer) * kLongestLine> text;
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

// Removes `name`; preserves errno.
void Remove(const base::Spot& spot, const std::string& name) {
  const int error = errno;
  ::unlinkat(spot.directory.get(), name.c_str(), 0);
  errno = error;
}

// Writes this text to a file next to `spot`, for this user only; returns its name. `path` is for
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

// Locks the file until the result is closed. Over NFS a lock needs a writable descriptor.
absl::StatusOr<base::UniqueFd> Lock(const std::string& path) {
  for (;;) {
    absl::StatusOr<base::UniqueFd> fd = base::OpenFile(path, O_RDWR | O_NONBLOCK | O_NOCTTY);
    if (!fd.ok()) fd = base::OpenFile(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (!fd.ok()) return Wrong(kRead, path, fd.status());
    while (::flock(fd->get(), LOCK_EX) != 0) {
      if (errno != EINTR) {
        return base::SystemFailure(absl::StatusCode::kFailedPrecondition, "lock token file", path,
                                   errno);
      }
    }
    // The former holder has replaced the file.
    struct stat locked = {}, there = {};
    if (::fstat(fd->get(), &locked) != 0 || ::stat(path.c_str(), &there) != 0) {
      return ReadFailure(path);
    }
    if (locked.st_dev == there.st_dev && locked.st_ino == there.st_ino) return fd;
  }
}

}  // namespace

std::string TokenFile::Text() const {
  std::string text = token.Text();
  for (const FormerToken& old : former) {
    absl::StrAppend(&text, "former ", absl::StripAsciiWhitespace(old.token.Text()), " until ",
                    absl::FormatTime(kUntil, old.until, absl::UTCTimeZone()), "\n");
  }
  return text;
}

absl::StatusOr<TokenFile> TokenFile::Parse(absl::string_view text) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
  constexpr std::size_t kWordsOfFormer = 4;
  const bool has_former = words.size() > 1 && words.size() % kWordsOfFormer == 1;
  absl::StatusOr<Token> token = Token::Parse(has_former ? words[0] : text);
  if (!token.ok()) return token.status();
  TokenFile file{.token = *std::move(token)};
  for (std::size_t at = 1; has_former && at < words.size(); at += kWordsOfFormer) {
    absl::StatusOr<Token> former = Token::Parse(words[at + 1]);
    absl::Time until;
    if (words[at] != "former" || words[at + 2] != "until" || !former.ok() ||
        !absl::ParseTime(kUntil, words[at + 3], &until, nullptr)) {
      return absl::InvalidArgumentError(
          "has a line that is not \"former TOKEN until YYYY-MM-DDThh:mm:ssZ\"; remove that line, "
          "or make a new token with `muster token new`");
    }
    file.former.push_back({*std::move(former), until});
  }
  if (file.former.size() > kMostFormer) {
    return absl::InvalidArgumentError(absl::StrCat("has ", file.former.size(), " old tokens, and ",
                                                   kMostFormer,
                                                   " are accepted; remove the oldest lines"));
  }
  return file;
}

absl::StatusOr<TokenFile> ReadTokens(const std::string& path) {
  // Does not block, as it may be a FIFO.
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

absl::StatusOr<TokenFile> RotateTokenFile(const std::string& path, absl::Time former_until) {
  // First, as it gives the best error for a file that is not a token file.
  absl::StatusOr<TokenFile> before = ReadTokens(path);
  if (!before.ok()) return before.status();
  const absl::StatusOr<base::UniqueFd> lock = Lock(path);
  if (!lock.ok()) return lock.status();
  before = ReadTokens(path);
  if (!before.ok()) return before.status();
  // The target of a link; else the link would be replaced.
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), &std::free);
  if (real == nullptr) return ReadFailure(path);
  const absl::StatusOr<base::Spot> spot = base::FindSpot(real.get());
  if (!spot.ok()) return Wrong(kMake, path, spot.status());
  TokenFile after{.token = Token::Random()};
  if (const absl::Time now = absl::Now(); former_until > now) {
    after.former.push_back({before->token, former_until});
    std::copy_if(before->former.begin(), before->former.end(), std::back_inserter(after.former),
                 [now](const FormerToken& old) { return old.until > now; });
  }
  if (after.former.size() > TokenFile::kMostFormer) {
    return base::Failure(
        absl::StatusCode::kResourceExhausted, "replace the token in", path,
        absl::StrCat("it has ", TokenFile::kMostFormer,
                     " old tokens that are still accepted, which is the limit; wait until one "
                     "expires, or end them all with --old-token-ttl=0"));
  }
  const absl::StatusOr<std::string> draft = WriteDraft(*spot, path, after.Text());
  if (!draft.ok()) return draft.status();
  const int folder = spot->directory.get();
  if (::renameat(folder, draft->c_str(), folder, spot->name.c_str()) == 0) return after;
  Remove(*spot, *draft);
  return MakeFailure(path);
}

absl::Status WriteTokenFile(const std::string& path, const Token& token) {
  const absl::StatusOr<base::Spot> spot = base::FindSpot(path, {.make = 0700});
  if (!spot.ok())
    return base::Failure(absl::StatusCode::kFailedPrecondition, kMake, path,
                         spot.status().message());
  // Written under a unique name, then linked: rename() would replace a file that another process
  // has just created, and a reader must never see half of it. (Over NFS, too, link() is atomic.)
  const absl::StatusOr<std::string> draft = WriteDraft(*spot, path, token.Text());
  if (!draft.ok()) return draft.status();
  const int folder = spot->directory.get();
  const int error =
      ::linkat(folder, draft->c_str(), folder, spot->name.c_str(), 0) == 0 ? 0 : errno;
  Remove(*spot, *draft);
  if (error == EEXIST) {
    return base::Failure(
        absl::StatusCode::kAlreadyExists, kMake, path,
        "it already exists, and jobs may depend on it; remove it first, or name another file");
  }
  return error == 0 ? absl::OkStatus() : MakeFailure(path, error);
}

absl::StatusOr<Token> ReadOrMakeTokenFile(const std::string& path) {
  absl::StatusOr<Token> token = ReadTokenFile(path);
  if (!absl::IsNotFound(token.status())) return token;
  const absl::Status made = WriteTokenFile(path, Token::Random());
  // Another process may have created it first.
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  return ReadTokenFile(path);
}

}  // namespace muster::rendezvous
