// How an agent that can no longer reach its daemon asks, over a plain TCP connection to the same
// port, what has become of it, and how somebody who holds the port for a dead daemon answers.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// One line each way, and the answer ends the connection:
//
//   KNOCK SHA256(session) NONCE\n     both in hexadecimal
//   paused HMAC\n                     or "gone HMAC\n"
//
// An eavesdropper learns no session token, and an answer is good for one nonce only, so it must
// have been given after the nonce was made. A living daemon closes the connection without a word.
// Anything else at the port, a firewall or a proxy, cannot answer: the HMAC uses a secret that the
// daemon tells each agent in its Welcome. The daemon, and those who answer for it, derive the
// secret from a key that never leaves the daemon's machine.
//
// Nothing here allocates memory or takes a lock, except functions that return a string: it is used
// by a process that was forked while other threads were running.

// The first byte of a knock; no other protocol on the port begins with it.
inline constexpr char kFirstOfKnock = 'K';
// Every knock has this size.
inline constexpr std::size_t kKnockSize = 6 + 64 + 1 + 32 + 1;
// No answer is longer, including its line feed.
inline constexpr std::size_t kMaxKnockAnswer = 6 + 1 + 64 + 1;
// What the next process that wants to listen on the port says, from the same machine: a holder
// whose daemon will never come back makes room at once. Also a line; the only answer is that the
// connection ends.
inline constexpr std::string_view kMakeRoom = "KROOM\n";

// The daemon is dead; both words say more about what comes after.
enum class KnockWord {
  // Nobody decides anything until it is started again, and then each node has its whole lease from
  // that start.
  kPaused,
  // It remembered nothing: nobody will ever give this node's place away.
  kGone,
};

// What all secrets of a daemon are derived from, for as long as its port is held. Never on the
// wire.
using KnockKey = std::array<unsigned char, 32>;
// HMAC-SHA256 by the key, of the session's hash: 32 bytes. Empty: there is none.
using KnockSecret = std::string;
// A new one is made for each knock.
using KnockNonce = std::array<unsigned char, 16>;

struct Knock {
  std::array<unsigned char, 32> session_hash{};
  KnockNonce nonce{};
};

// From the kernel's random numbers; aborts if there are none.
KnockKey MakeKnockKey();
KnockNonce MakeKnockNonce();

// The secret that the agent of this session is told. Empty for an agent without a token, which
// cannot come back.
KnockSecret SecretFor(const KnockKey& key, const SessionToken& session);

// An agent's line.
std::string FormatKnock(const SessionToken& session, const KnockNonce& nonce);

// Whether the bytes read from a connection so far are a knock.
enum class KnockState {
  kMore,     // may become a knock
  kWhole,    // is one, and nothing more
  kGarbage,  // can no longer become one
};

// Fills in `knock` if it is whole, otherwise leaves it alone.
KnockState ParseKnock(std::string_view text, Knock* knock);

// A line to answer with: `text`, of which `size` bytes are used.
struct KnockAnswer {
  std::array<char, kMaxKnockAnswer> text{};
  std::size_t size = 0;

  std::string_view view() const { return {text.data(), size}; }
};
KnockAnswer AnswerKnock(const KnockKey& key, const Knock& knock, KnockWord word);

// The word of a whole answer, line feed included, to a knock with this nonce. nullopt: it is not an
// answer, or not from somebody who knows the secret. Takes the same time whatever the HMAC is.
std::optional<KnockWord> VerifyKnockAnswer(const KnockSecret& secret, const KnockNonce& nonce,
                                           std::string_view answer);

}  // namespace muster::rendezvous
