// The secret that the nodes, the daemon and the tools of one user or one team share.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::rendezvous {

// 256 random bits. Whoever has them may join, read and end every job that was started with them;
// everything else about identities is derived (authority.h). Overwritten in memory when it goes.
class Token {
 public:
  static constexpr std::size_t kBytes = 32;

  // From the kernel's random numbers; aborts if there are none.
  static Token Random();

  // Reads what Text writes; white space around it is left out. An error's message is a phrase that
  // follows the name of where the text is from: "holds no token: ...". It shows nothing of the
  // text, which may be a secret of another kind.
  static absl::StatusOr<Token> Parse(absl::string_view text);

  Token(const Token&) = default;
  Token& operator=(const Token&) = default;
  ~Token();

  // 64 hexadecimal digits and a line feed: what a token file holds. To be shown to nobody who has
  // not asked for it.
  std::string Text() const;

  const std::array<unsigned char, kBytes>& bytes() const { return bytes_; }

  // Another token, which follows from this one and from which nobody can tell this one: its holders
  // may look at jobs (Role::kMetrics) and do nothing else. HKDF-SHA256 (RFC 5869) with a label.
  Token ForMetrics() const;

  // By which this token is known again, and from which nobody can tell it. HKDF-SHA256 with a label
  // of its own: some microseconds, where an authority takes a third of a millisecond.
  std::array<unsigned char, kBytes> Fingerprint() const;

  bool operator==(const Token&) const = default;

 private:
  Token() = default;

  std::array<unsigned char, kBytes> bytes_{};
};

}  // namespace muster::rendezvous
