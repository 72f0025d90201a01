// Feeds what a stranger can send to the rendezvous's port, from the first byte of a connection on,
// for libFuzzer (scripts/fuzz.sh) and for fuzz_seeds_test: who takes the connection, and what he
// reads of it. (gRPC reads the rest; the workers' store has a target of its own.) The first byte of
// the input chooses what the port serves, and whether it is an agent instead that reads an answer.
//
// In addition to the sanitizers' checks: nobody gets in without TLS where it is asked for, the
// store is reached only where it is served, bytes mean the same however they arrive, and nobody
// without the secret answers a knock.
#include <cstdlib>
#include <string>
#include <string_view>

#include "rendezvous/fronts/tcpstore_codec.h"
#include "rendezvous/wire/first_byte.h"
#include "rendezvous/wire/peer.h"
#include "test/fuzz/fuzz.h"

namespace muster::rendezvous {
namespace {

constexpr TcpStoreDecodeLimits kDecodeLimits = {
    .key_bytes = 16, .value_bytes = 32, .keys_per_request = 8, .request_bytes = 256};

void Check(bool holds) {
  if (!holds) std::abort();
}

void CheckDeathNotice(std::string_view text) {
  const auto session = ParseDeathNotice(text.substr(0, kMaxDeathNotice));
  if (!session) return;
  const std::string again = FormatDeathNotice(*session);
  Check(again.size() <= kMaxDeathNotice && again.find('\n') == again.size() - 1);
  Check(ParseDeathNotice(again) == session);
}

// As the bytes come in, one by one.
void CheckKnock(std::string_view text) {
  static const KnockKey key = MakeKnockKey();
  Knock knock;
  KnockState before = KnockState::kMore;
  for (std::size_t size = 0; size <= text.size() && size <= kKnockSize + 1; ++size) {
    // Memory of its own, so that a look beyond its end is found.
    const std::string part(text.substr(0, size));
    const KnockState state = ParseKnock(part, &knock);
    Check(before != KnockState::kGarbage || state == KnockState::kGarbage);
    Check(before != KnockState::kWhole || state == KnockState::kGarbage);
    before = state;
    if (state != KnockState::kWhole) continue;
    Check(size == kKnockSize);
    const KnockAnswer answer = AnswerKnock(key, knock, KnockWord::kGone);
    // Nobody but the session that has knocked takes it, and this is not that one.
    Check(!VerifyKnockAnswer(SecretFor(key, "another"), knock.nonce, answer.view()));
  }
}

// An agent has knocked, and these are the words of whoever has the port.
void CheckKnockAnswer(std::string_view text) {
  static const KnockKey key = MakeKnockKey();
  static const KnockNonce nonce = {};
  static const SessionToken session = "session";
  static const KnockSecret secret = SecretFor(key, session);
  Check(!VerifyKnockAnswer(secret, nonce, text));
  Check(!VerifyKnockAnswer("", nonce, text));

  static const std::string own = FormatKnock(session, nonce);
  Knock knock;
  Check(ParseKnock(own, &knock) == KnockState::kWhole && knock.nonce == nonce);
  const KnockAnswer answer = AnswerKnock(key, knock, KnockWord::kPaused);
  Check(VerifyKnockAnswer(secret, nonce, answer.view()) == KnockWord::kPaused);
  // Somebody on the way changes something, which has to be noticed.
  if (text.empty()) return;
  std::string changed(answer.view());
  const auto at = static_cast<unsigned char>(text[0]) % changed.size();
  const char by = text.size() > 1 ? text[1] : '\x20';
  changed[at] = static_cast<char>(changed[at] ^ by);
  Check(by == 0 || !VerifyKnockAnswer(secret, nonce, changed));
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
  switch (CallerBy(first, secure, serves_store)) {
    case Caller::kGrpc:
      Check(first == (secure ? kFirstOfTls : kFirstOfHttp2));
      break;
    case Caller::kWrongDoor:
      Check(first == (secure ? kFirstOfHttp2 : kFirstOfTls));
      break;
    case Caller::kDeathNotice:
      CheckDeathNotice(bytes);
      break;
    case Caller::kStore:
      Check(serves_store);
      CheckStore(bytes, told);
      break;
    case Caller::kKnock:
      CheckKnock(bytes);
      break;
    case Caller::kStranger:
      // What nobody takes, nobody may understand.
      Check(!ParseDeathNotice(bytes));
      Check(serves_store || !secure || first != kFirstOfTls);
      Knock knock;
      Check(ParseKnock(bytes, &knock) == KnockState::kGarbage);
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
