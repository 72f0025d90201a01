// How an agent that can no longer reach its daemon asks, over a plain TCP connection to the same
// port, what happened to it, and how a holder of the port answers for a dead daemon.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// One line each way, and the answer ends the connection:
//
//   KNOCK SHA256(session) NONCE\n     both in hexadecimal
//   paused HMAC\n                     or "gone HMAC\n"
//
// An eavesdropper learns no session token, and an answer is valid for one nonce only, so it cannot
// be older than the nonce. A living daemon closes the connection without an answer. Anything else
// at the port, a firewall or a proxy, cannot answer: the HMAC uses a secret that each agent
// receives in its Welcome. The daemon, and the process that answers for it, derive the secret from
// a key that never leaves the daemon's machine.
//
// Nothing here allocates memory or takes a lock, except functions that return a string: it is used
// by a process that was forked while other threads were running.

// The first byte of a probe; no other protocol on the port begins with it.
inline constexpr char kFirstOfKnock = 'K';
// Every probe has this size.
inline constexpr std::size_t kProbeSize = 6 + 64 + 1 + 32 + 1;
// No answer is longer, including its line feed.
inline constexpr std::size_t kMaxKnockAnswer = 6 + 1 + 64 + 1;
// Sent by the next process on the same machine that wants to listen on the port: a holder whose
// daemon will not come back makes room at once. One line, answered by the end of the connection.
inline constexpr std::string_view kMakeRoom = "KROOM\n";

// The daemon is dead; the word says what comes next.
enum class ProbeWord {
  // Nothing is decided until it is restarted, and then each node has its whole lease.
  kPaused,
  // It had no journal: this node's place will never be given away.
  kGone,
};

// The root of all of a daemon's secrets, as long as its port is held. Never on the wire.
using ProbeKey = std::array<unsigned char, 32>;
// HMAC-SHA256 by the key, of the session's hash: 32 bytes. Empty: none.
using ProbeSecret = std::string;
// A new one is made for each probe.
using ProbeNonce = std::array<unsigned char, 16>;

struct LivenessProbe {
  std::array<unsigned char, 32> session_hash{};
  ProbeNonce nonce{};
};

// From the kernel's random number generator; aborts if that fails.
ProbeKey MakeKnockKey();
ProbeNonce MakeProbeNonce();

// The secret for the agent of this session. Empty for an agent without a session token, which
// cannot come back.
ProbeSecret SecretFor(const ProbeKey& key, const SessionToken& session);

// An agent's line.
std::string FormatProbe(const SessionToken& session, const ProbeNonce& nonce);

// Whether the bytes read from a connection so far are a probe.
enum class ProbeState {
  kMore,     // may become a probe
  kWhole,    // is one, and nothing more
  kGarbage,  // can no longer become one
};

// Fills in `probe` if it is whole, otherwise leaves it alone.
ProbeState ParseProbe(std::string_view text, LivenessProbe* probe);

// An answer's line: `text`, of which `size` bytes are used.
struct ProbeAnswer {
  std::array<char, kMaxKnockAnswer> text{};
  std::size_t size = 0;

  std::string_view view() const { return {text.data(), size}; }
};
ProbeAnswer AnswerProbe(const ProbeKey& key, const LivenessProbe& probe, ProbeWord word);

// The word in a complete answer, line feed included, to a probe with this nonce. nullopt: not an
// answer, or not made with the secret. Constant time in the HMAC.
std::optional<ProbeWord> VerifyProbeAnswer(const ProbeSecret& secret, const ProbeNonce& nonce,
                                           std::string_view answer);

// How the guard of a dead agent notifies the daemon, over a TCP connection of its own to the
// daemon's port: one line of text, sent by a process that can no longer use gRPC.

// The first byte of the connection; no other protocol on the port begins with it.
inline constexpr char kFirstOfDeathNotice = 'D';
// No death notice is longer.
inline constexpr std::size_t kMaxDeathNotice = 128;

// "DEAD SESSION\n". The session token proves that it comes from the agent's own host. Where
// connections are encrypted, this is the first time that others can see the token, and the last
// time that it is useful.
std::string FormatDeathNotice(const SessionToken& session);

// nullopt: not a death notice, incomplete, or followed by more.
std::optional<SessionToken> ParseDeathNotice(std::string_view text);

}  // namespace muster::rendezvous
