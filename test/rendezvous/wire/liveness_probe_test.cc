#include "rendezvous/wire/liveness_probe.h"

#include <string>

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

constexpr char kSession[] = "0123456789abcdef";

class LivenessProbeTest : public testing::TestWithParam<ProbeWord> {
 protected:
  // The answer of a holder of `key` to the line.
  static std::string Answer(const ProbeKey& key, const std::string& line, ProbeWord word) {
    LivenessProbe probe;
    EXPECT_EQ(ParseProbe(line, &probe), ProbeState::kWhole) << line;
    return std::string(AnswerProbe(key, probe, word).view());
  }

  const ProbeKey key_ = MakeKnockKey();
  const ProbeNonce nonce_ = MakeProbeNonce();
  const ProbeSecret secret_ = SecretFor(key_, kSession);
  const std::string line_ = FormatProbe(kSession, nonce_);
};

TEST_P(LivenessProbeTest, WhoeverHasTheKeyIsBelieved) {
  EXPECT_EQ(line_.front(), kFirstOfKnock);
  const std::string answer = Answer(key_, line_, GetParam());
  EXPECT_LE(answer.size(), kMaxKnockAnswer);
  EXPECT_EQ(answer.back(), '\n');
  EXPECT_EQ(VerifyProbeAnswer(secret_, nonce_, answer), GetParam());
}

TEST_P(LivenessProbeTest, AnswerIsForOneNonceOneSessionAndOneKey) {
  const std::string answer = Answer(key_, line_, GetParam());
  // Replayed to the next probe.
  EXPECT_EQ(VerifyProbeAnswer(secret_, MakeProbeNonce(), answer), std::nullopt);
  // Requested by another agent.
  EXPECT_EQ(VerifyProbeAnswer(SecretFor(key_, "another"), nonce_, answer), std::nullopt);
  // Given by another daemon.
  EXPECT_EQ(VerifyProbeAnswer(secret_, nonce_, Answer(MakeKnockKey(), line_, GetParam())),
            std::nullopt);
  // Without a secret no answer is accepted.
  EXPECT_EQ(VerifyProbeAnswer("", nonce_, answer), std::nullopt);
}

TEST_P(LivenessProbeTest, ChangedAnswerIsNone) {
  const std::string answer = Answer(key_, line_, GetParam());
  for (std::size_t at = 0; at < answer.size(); ++at) {
    std::string changed = answer;
    changed[at] = changed[at] == '0' ? '1' : '0';
    EXPECT_EQ(VerifyProbeAnswer(secret_, nonce_, changed), std::nullopt) << at;
    EXPECT_EQ(VerifyProbeAnswer(secret_, nonce_, answer.substr(0, at)), std::nullopt) << at;
  }
  EXPECT_EQ(VerifyProbeAnswer(secret_, nonce_, answer + "\n"), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Words, LivenessProbeTest,
                         testing::Values(ProbeWord::kPaused, ProbeWord::kGone));

// The HMAC covers the word: one cannot be turned into the other.
TEST_F(LivenessProbeTest, WordCannotBeExchanged) {
  std::string answer = Answer(key_, line_, ProbeWord::kPaused);
  answer.replace(0, std::string("paused").size(), "gone");
  EXPECT_EQ(VerifyProbeAnswer(secret_, nonce_, answer), std::nullopt);
}

TEST_F(LivenessProbeTest, LivenessProbeIsReadInPiecesOfAnySize) {
  LivenessProbe probe;
  for (std::size_t size = 0; size < line_.size(); ++size) {
    EXPECT_EQ(ParseProbe(line_.substr(0, size), &probe), ProbeState::kMore) << size;
  }
  EXPECT_EQ(probe.nonce, ProbeNonce{}) << "it was touched before it was whole";
  EXPECT_EQ(ParseProbe(line_, &probe), ProbeState::kWhole);
  EXPECT_EQ(probe.nonce, nonce_);
  EXPECT_EQ(line_.size(), kProbeSize);
}

TEST_F(LivenessProbeTest, GarbageIsKnownAtItsFirstWrongByte) {
  LivenessProbe probe;
  for (std::size_t at = 0; at < line_.size(); ++at) {
    std::string wrong = line_.substr(0, at + 1);
    wrong[at] = 'x';
    EXPECT_EQ(ParseProbe(wrong, &probe), ProbeState::kGarbage) << at;
  }
  EXPECT_EQ(ParseProbe(line_ + "\n", &probe), ProbeState::kGarbage);
  EXPECT_EQ(ParseProbe(std::string(1 << 16, 'K'), &probe), ProbeState::kGarbage);
  EXPECT_EQ(ParseProbe(kMakeRoom, &probe), ProbeState::kGarbage);
  EXPECT_EQ(probe.nonce, ProbeNonce{});
}

TEST_F(LivenessProbeTest, NeitherTokenNorSecretIsOnTheWire) {
  EXPECT_EQ(line_.find(kSession), std::string::npos);
  EXPECT_EQ(secret_.size(), 32u);
  EXPECT_NE(secret_, SecretFor(MakeKnockKey(), kSession));
  EXPECT_NE(MakeProbeNonce(), MakeProbeNonce());
}

TEST_F(LivenessProbeTest, SessionWithoutATokenHasNoSecret) {
  EXPECT_EQ(SecretFor(key_, ""), "");
}

// Computed with Python's hashlib and hmac: another implementation must agree.
TEST_F(LivenessProbeTest, LinesAreWhatOthersComputeThemToBe) {
  ProbeKey key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<unsigned char>(i);
  ProbeNonce nonce;
  nonce.fill(0xab);
  const std::string line = FormatProbe("session", nonce);
  EXPECT_EQ(line,
            "KNOCK 3f3af1ecebbd1410ab417ec0d27bbfcb5d340e177ae159b59fc8626c2dfd9175"
            " abababababababababababababababab\n");
  EXPECT_EQ(Answer(key, line, ProbeWord::kPaused),
            "paused 41e127ab96ded33bd2a54a2b203c2b6ceba8204a197a48306ccded5138e2ab64\n");
  EXPECT_EQ(Answer(key, line, ProbeWord::kGone),
            "gone 5f3e3cb2ae27f8ede302a03b6016d939f033aea3d9cffb733888c1a1469a1e2f\n");
}

}  // namespace
}  // namespace muster::rendezvous
