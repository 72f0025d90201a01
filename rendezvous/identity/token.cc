#include "rendezvous/identity/token.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include <openssl/crypto.h>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "rendezvous/identity/derive.h"

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

}  // namespace muster::rendezvous
