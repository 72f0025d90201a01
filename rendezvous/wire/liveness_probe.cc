#include "rendezvous/wire/liveness_probe.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <initializer_list>

#include "absl/strings/str_cat.h"

// These functions, deprecated in OpenSSL 3, only compute. Their successors load providers and a
// configuration file at first use, which takes milliseconds, allocates, and takes locks that
// another thread may have held at the fork.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace muster::rendezvous {
namespace {

constexpr std::string_view kKnockBegin = "KNOCK ";
constexpr std::string_view kSecretLabel = "muster knock secret\n";
constexpr std::string_view kAnswerLabel = "muster knock answer\n";
constexpr std::string_view kPausedWord = "paused";
constexpr std::string_view kGoneWord = "gone";

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;
static_assert(sizeof(LivenessProbe::session_hash) == sizeof(Digest) &&
              sizeof(ProbeKey) == sizeof(Digest));

std::string_view Bytes(const unsigned char* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

template <std::size_t kSize>
std::string_view Bytes(const std::array<unsigned char, kSize>& data) {
  return Bytes(data.data(), kSize);
}

Digest Sha256(std::initializer_list<std::string_view> parts) {
  SHA256_CTX context;
  SHA256_Init(&context);
  for (const std::string_view part : parts) SHA256_Update(&context, part.data(), part.size());
  Digest digest;
  SHA256_Final(digest.data(), &context);
  return digest;
}

// RFC 2104, for keys no longer than a block.
Digest HmacSha256(std::string_view key, std::initializer_list<std::string_view> parts) {
  std::array<unsigned char, SHA256_CBLOCK> inner{}, outer{};
  if (key.size() > inner.size()) std::abort();
  std::copy(key.begin(), key.end(), inner.begin());
  outer = inner;
  for (unsigned char& byte : inner) byte ^= 0x36;
  for (unsigned char& byte : outer) byte ^= 0x5c;
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, inner.data(), inner.size());
  for (const std::string_view part : parts) SHA256_Update(&context, part.data(), part.size());
  Digest digest;
  SHA256_Final(digest.data(), &context);
  return Sha256({Bytes(outer), Bytes(digest)});
}

Digest SecretOf(const ProbeKey& key, const Digest& session_hash) {
  return HmacSha256(Bytes(key), {kSecretLabel, Bytes(session_hash)});
}

Digest AnswerOf(std::string_view secret, std::string_view word, const ProbeNonce& nonce) {
  return HmacSha256(secret, {kAnswerLabel, word, "\n", Bytes(nonce)});
}

template <std::size_t kSize>
void FillAtRandom(std::array<unsigned char, kSize>& bytes) {
  // This few bytes arrive all at once, or not at all.
  ssize_t got;
  do {
    got = getrandom(bytes.data(), kSize, 0);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(kSize)) std::abort();
}

// Returns the end of the digits.
char* WriteHex(std::string_view bytes, char* out) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    *out++ = kDigits[byte >> 4];
    *out++ = kDigits[byte & 15];
  }
  return out;
}

int DigitOf(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

template <std::size_t kSize>
bool ReadHex(std::string_view digits, std::array<unsigned char, kSize>& bytes) {
  if (digits.size() != 2 * kSize) return false;
  for (std::size_t i = 0; i < kSize; ++i) {
    const int high = DigitOf(digits[2 * i]);
    const int low = DigitOf(digits[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<unsigned char>(high << 4 | low);
  }
  return true;
}

// Whether a probe may have this byte at this offset.
bool Fits(std::size_t at, char byte) {
  constexpr std::size_t kSpace = kKnockBegin.size() + 2 * sizeof(Digest);
  if (at < kKnockBegin.size()) return byte == kKnockBegin[at];
  if (at == kSpace) return byte == ' ';
  if (at == kProbeSize - 1) return byte == '\n';
  return DigitOf(byte) >= 0;
}

std::string_view NameOf(ProbeWord word) {
  return word == ProbeWord::kPaused ? kPausedWord : kGoneWord;
}

constexpr std::string_view kDeathNoticeBegin = "DEAD ";

}  // namespace

ProbeKey MakeKnockKey() {
  ProbeKey key;
  FillAtRandom(key);
  return key;
}

ProbeNonce MakeProbeNonce() {
  ProbeNonce nonce;
  FillAtRandom(nonce);
  return nonce;
}

ProbeSecret SecretFor(const ProbeKey& key, const SessionToken& session) {
  if (session.empty()) return {};
  return ProbeSecret(Bytes(SecretOf(key, Sha256({session}))));
}

std::string FormatProbe(const SessionToken& session, const ProbeNonce& nonce) {
  std::string line(kProbeSize, ' ');
  char* out = std::copy(kKnockBegin.begin(), kKnockBegin.end(), line.data());
  out = WriteHex(Bytes(Sha256({session})), out) + 1;
  *WriteHex(Bytes(nonce), out) = '\n';
  return line;
}

ProbeState ParseProbe(std::string_view text, LivenessProbe* probe) {
  if (text.size() > kProbeSize) return ProbeState::kGarbage;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!Fits(at, text[at])) return ProbeState::kGarbage;
  }
  if (text.size() < kProbeSize) return ProbeState::kMore;
  text.remove_prefix(kKnockBegin.size());
  ReadHex(text.substr(0, 2 * sizeof(Digest)), probe->session_hash);
  ReadHex(text.substr(2 * sizeof(Digest) + 1, 2 * sizeof(ProbeNonce)), probe->nonce);
  return ProbeState::kWhole;
}

ProbeAnswer AnswerProbe(const ProbeKey& key, const LivenessProbe& probe, ProbeWord word) {
  const std::string_view name = NameOf(word);
  const Digest secret = SecretOf(key, probe.session_hash);
  ProbeAnswer answer;
  char* out = std::copy(name.begin(), name.end(), answer.text.data());
  *out++ = ' ';
  out = WriteHex(Bytes(AnswerOf(Bytes(secret), name, probe.nonce)), out);
  *out++ = '\n';
  answer.size = static_cast<std::size_t>(out - answer.text.data());
  return answer;
}

std::optional<ProbeWord> VerifyProbeAnswer(const ProbeSecret& secret, const ProbeNonce& nonce,
                                           std::string_view answer) {
  if (secret.size() != sizeof(Digest)) return std::nullopt;
  for (const ProbeWord word : {ProbeWord::kPaused, ProbeWord::kGone}) {
    const std::string_view name = NameOf(word);
    if (answer.size() != name.size() + 1 + 2 * sizeof(Digest) + 1) continue;
    if (answer.substr(0, name.size()) != name || answer[name.size()] != ' ') continue;
    Digest given;
    if (answer.back() != '\n') return std::nullopt;
    if (!ReadHex(answer.substr(name.size() + 1, 2 * sizeof(Digest)), given)) return std::nullopt;
    const Digest right = AnswerOf(secret, name, nonce);
    if (CRYPTO_memcmp(given.data(), right.data(), sizeof(Digest)) == 0) return word;
  }
  return std::nullopt;
}

std::string FormatDeathNotice(const SessionToken& session) {
  return absl::StrCat("DEAD ", session, "\n");
}

std::optional<SessionToken> ParseDeathNotice(std::string_view text) {
  if (!text.starts_with(kDeathNoticeBegin) || text.back() != '\n') return std::nullopt;
  text.remove_prefix(kDeathNoticeBegin.size());
  text.remove_suffix(1);
  if (text.empty() || text.find('\n') != std::string_view::npos) return std::nullopt;
  return SessionToken(text);
}

}  // namespace muster::rendezvous
