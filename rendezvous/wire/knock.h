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
// Who listens in learns no session token, and an answer is good for one nonce alone: that it came
// says that it was given after the nonce was made. A daemon that lives closes the connection
// without a word. Whoever else holds the port, a firewall or a proxy, cannot answer: the HMAC is by
// a secret that the daemon tells each agent in its Welcome, and that it derives, as those who
// answer for it do, from a key that never leaves the daemon's machine.
//
// Nothing here allocates memory or takes a lock but what returns a string: a process that was
// forked beside other threads answers by it.

// With what a knock begins; no other protocol on the port does.
inline constexpr char kFirstOfKnock = 'K';
// Every knock has this size.
inline constexpr std::size_t kKnockSize = 6 + 64 + 1 + 32 + 1;
// No answer is longer, its line feed included.
inline constexpr std::size_t kMaxKnockAnswer = 6 + 1 + 64 + 1;
// What the next process that is to listen on the port says, from the same machine: a holder whose
// daemon will never come back makes room at once. Also a line; there is no answer but the end.
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
// To be made anew for each knock.
using KnockNonce = std::array<unsigned char, 16>;

struct Knock {
  std::array<unsigned char, 32> session_hash{};
  KnockNonce nonce{};
};

// From the kernel's random numbers; aborts where it has none.
KnockKey MakeKnockKey();
KnockNonce MakeKnockNonce();

// What the agent of this session is told. Empty for one without a token, which cannot come back.
KnockSecret SecretFor(const KnockKey& key, const SessionToken& session);

// An agent's line.
std::string FormatKnock(const SessionToken& session, const KnockNonce& nonce);

// What has been read of a connection so far.
enum class KnockState {
  kMore,     // may become a knock
  kWhole,    // is one, and nothing more
  kGarbage,  // can no longer become one
};

// Fills in `knock` when it is whole, and else leaves it alone.
KnockState ParseKnock(std::string_view text, Knock* knock);

// A line to answer with: `text`, of which `size` bytes are used.
struct KnockAnswer {
  std::array<char, kMaxKnockAnswer> text{};
  std::size_t size = 0;

  std::string_view view() const { return {text.data(), size}; }
};
KnockAnswer AnswerKnock(const KnockKey& key, const Knock& knock, KnockWord word);

// The word of a whole answer, line feed included, to a knock with this nonce. Nothing: it is none,
// or not by somebody who knows the secret. Takes as long whatever the HMAC is.
std::optional<KnockWord> VerifyKnockAnswer(const KnockSecret& secret, const KnockNonce& nonce,
                                           std::string_view answer);

}  // namespace muster::rendezvous
