// Feeds what a stranger can send to the rendezvous's port, from the first byte of a connection on,
// for libFuzzer (scripts/fuzz.sh) and for fuzz_seeds_test: which server takes the connection, and
// what it reads of it. (gRPC reads the rest; the workers' store has a target of its own.) The first
// byte of the input chooses what the port serves, and whether it is an agent instead that reads an
// answer.
//
// In addition to the sanitizers' checks: nobody gets in without TLS where it is asked for, the
// store is reached only where it is served, bytes mean the same however they arrive, and nobody
// without the secret answers a knock.
#include <cstdlib>
#include <string>
#include <string_view>

#include "rendezvous/net/peer.h"
#include "rendezvous/wire/first_byte.h"
#include "rendezvous/wire/tcpstore_codec.h"
#include "test/fuzz/fuzz.h"

namespace muster::rendezvous {
namespace {

constexpr TcpStoreDecodeLimits kDecodeLimits = {
    .key_bytes = 16, .value_bytes = 32, .keys_per_request = 8, .request_bytes = 256};

void CheckDeathNotice(std::string_view text) {
  const auto session = ParseDeathNotice(text.substr(0, kMaxDeathNotice));
  if (!session) return;
  const std::string again = FormatDeathNotice(*session);
  Check(again.size() <= kMaxDeathNotice && again.find('\n') == again.size() - 1);
  Check(ParseDeathNotice(again) == session);
}

// As the bytes come in, one by one.
void CheckProbe(std::string_view text) {
  static const ProbeKey key = MakeKnockKey();
  LivenessProbe probe;
  ProbeState before = ProbeState::kMore;
  for (std::size_t size = 0; size <= text.size() && size <= kProbeSize + 1; ++size) {
    // Memory of its own, so that a look beyond its end is found.
    const std::string part(text.substr(0, size));
    const ProbeState state = ParseProbe(part, &probe);
    Check(before != ProbeState::kGarbage || state == ProbeState::kGarbage);
    Check(before != ProbeState::kWhole || state == ProbeState::kGarbage);
    before = state;
    if (state != ProbeState::kWhole) continue;
    Check(size == kProbeSize);
    const ProbeAnswer answer = AnswerProbe(key, probe, ProbeWord::kGone);
    // Nobody but the session that has knocked takes it, and this is not that one.
    Check(!VerifyProbeAnswer(SecretFor(key, "another"), probe.nonce, answer.view()));
  }
}

// An agent has knocked, and these are the words of whoever has the port.
void CheckKnockAnswer(std::string_view text) {
  static const ProbeKey key = MakeKnockKey();
  static const ProbeNonce nonce = {};
  static const SessionToken session = "session";
  static const ProbeSecret secret = SecretFor(key, session);
  Check(!VerifyProbeAnswer(secret, nonce, text));
  Check(!VerifyProbeAnswer("", nonce, text));

  static const std::string own = FormatProbe(session, nonce);
  LivenessProbe probe;
  Check(ParseProbe(own, &probe) == ProbeState::kWhole && probe.nonce == nonce);
  const ProbeAnswer answer = AnswerProbe(key, probe, ProbeWord::kPaused);
  Check(VerifyProbeAnswer(secret, nonce, answer.view()) == ProbeWord::kPaused);
  // Somebody on the way changes something, which has to be noticed.
  if (text.empty()) return;
  std::string changed(answer.view());
  const auto at = static_cast<unsigned char>(text[0]) % changed.size();
  const char by = text.size() > 1 ? text[1] : '\x20';
  changed[at] = static_cast<char>(changed[at] ^ by);
  Check(by == 0 || !VerifyProbeAnswer(secret, nonce, changed));
}

void CheckStore(std::string_view bytes, std::optional<TcpStoreDialect> told) {
  DialectHint hint(told);
  TcpStoreDecoder decoder(kDecodeLimits, hint);
  TcpStoreRequest request;
  for (;;) {
    const auto result = decoder.Next(bytes, request);
    if (result == TcpStoreDecoder::Result::kBroken) return;
    if (result != TcpStoreDecoder::Result::kRequest) break;
  }
  Check(bytes.empty() && decoder.buffered() <= 4 * kDecodeLimits.request_bytes);
}

void CheckConnection(std::string_view bytes, bool secure, bool serves_store,
                     std::optional<TcpStoreDialect> told) {
  if (bytes.empty()) return;
  const char first = bytes[0];
  switch (ProtocolBy(first, secure, serves_store)) {
    case Protocol::kGrpc:
      Check(first == (secure ? kFirstOfTls : kFirstOfHttp2));
      break;
    case Protocol::kWrongDoor:
      Check(first == (secure ? kFirstOfHttp2 : kFirstOfTls));
      break;
    case Protocol::kDeathNotice:
      CheckDeathNotice(bytes);
      break;
    case Protocol::kStore:
      Check(serves_store);
      CheckStore(bytes, told);
      break;
    case Protocol::kKnock:
      CheckProbe(bytes);
      break;
    case Protocol::kStranger:
      // What nobody takes, nobody may understand.
      Check(!ParseDeathNotice(bytes));
      Check(serves_store || !secure || first != kFirstOfTls);
      LivenessProbe probe;
      Check(ParseProbe(bytes, &probe) == ProbeState::kGarbage);
      break;
  }
}

}  // namespace
}  // namespace muster::rendezvous

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace rendezvous = muster::rendezvous;
  if (size == 0) return 0;
  const std::string own(reinterpret_cast<const char*>(data) + 1, size - 1);
  const unsigned choice = data[0];
  switch (choice % 4) {
    case 0:
      rendezvous::CheckKnockAnswer(own);
      break;
    case 1:
      rendezvous::ParsePeer(own);
      break;
    default: {
      std::optional<rendezvous::TcpStoreDialect> told;
      if ((choice & 0x10) != 0) told = rendezvous::TcpStoreDialect::k1x;
      if ((choice & 0x20) != 0) told = rendezvous::TcpStoreDialect::k21;
      rendezvous::CheckConnection(own, (choice & 4) != 0, (choice & 8) != 0, told);
    }
  }
  return 0;
}
