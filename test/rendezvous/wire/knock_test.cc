#include "rendezvous/wire/knock.h"

#include <string>

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

constexpr char kSession[] = "0123456789abcdef";

class KnockTest : public testing::TestWithParam<KnockWord> {
 protected:
  // What somebody who holds `key` answers to the line.
  static std::string Answer(const KnockKey& key, const std::string& line, KnockWord word) {
    Knock knock;
    EXPECT_EQ(ParseKnock(line, &knock), KnockState::kWhole) << line;
    return std::string(AnswerKnock(key, knock, word).view());
  }

  const KnockKey key_ = MakeKnockKey();
  const KnockNonce nonce_ = MakeKnockNonce();
  const KnockSecret secret_ = SecretFor(key_, kSession);
  const std::string line_ = FormatKnock(kSession, nonce_);
};

TEST_P(KnockTest, WhoeverHasTheKeyIsBelieved) {
  EXPECT_EQ(line_.front(), kFirstOfKnock);
  const std::string answer = Answer(key_, line_, GetParam());
  EXPECT_LE(answer.size(), kMaxKnockAnswer);
  EXPECT_EQ(answer.back(), '\n');
  EXPECT_EQ(VerifyKnockAnswer(secret_, nonce_, answer), GetParam());
}

TEST_P(KnockTest, AnswerIsForOneNonceOneSessionAndOneKey) {
  const std::string answer = Answer(key_, line_, GetParam());
  // Replayed to the next knock.
  EXPECT_EQ(VerifyKnockAnswer(secret_, MakeKnockNonce(), answer), std::nullopt);
  // Asked for by another agent.
  EXPECT_EQ(VerifyKnockAnswer(SecretFor(key_, "another"), nonce_, answer), std::nullopt);
  // Given by another daemon.
  EXPECT_EQ(VerifyKnockAnswer(secret_, nonce_, Answer(MakeKnockKey(), line_, GetParam())),
            std::nullopt);
  // Where there is no secret nobody is believed.
  EXPECT_EQ(VerifyKnockAnswer("", nonce_, answer), std::nullopt);
}

TEST_P(KnockTest, ChangedAnswerIsNone) {
  const std::string answer = Answer(key_, line_, GetParam());
  for (std::size_t at = 0; at < answer.size(); ++at) {
    std::string changed = answer;
    changed[at] = changed[at] == '0' ? '1' : '0';
    EXPECT_EQ(VerifyKnockAnswer(secret_, nonce_, changed), std::nullopt) << at;
    EXPECT_EQ(VerifyKnockAnswer(secret_, nonce_, answer.substr(0, at)), std::nullopt) << at;
  }
  EXPECT_EQ(VerifyKnockAnswer(secret_, nonce_, answer + "\n"), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Words, KnockTest, testing::Values(KnockWord::kPaused, KnockWord::kGone));

// The word is under the HMAC: nobody turns the one into the other.
TEST_F(KnockTest, WordCannotBeExchanged) {
  std::string answer = Answer(key_, line_, KnockWord::kPaused);
  answer.replace(0, std::string("paused").size(), "gone");
  EXPECT_EQ(VerifyKnockAnswer(secret_, nonce_, answer), std::nullopt);
}

TEST_F(KnockTest, KnockIsReadInPiecesOfAnySize) {
  Knock knock;
  for (std::size_t size = 0; size < line_.size(); ++size) {
    EXPECT_EQ(ParseKnock(line_.substr(0, size), &knock), KnockState::kMore) << size;
  }
  EXPECT_EQ(knock.nonce, KnockNonce{}) << "it was touched before it was whole";
  EXPECT_EQ(ParseKnock(line_, &knock), KnockState::kWhole);
  EXPECT_EQ(knock.nonce, nonce_);
  EXPECT_EQ(line_.size(), kKnockSize);
}

TEST_F(KnockTest, GarbageIsKnownAtItsFirstWrongByte) {
  Knock knock;
  for (std::size_t at = 0; at < line_.size(); ++at) {
    std::string wrong = line_.substr(0, at + 1);
    wrong[at] = 'x';
    EXPECT_EQ(ParseKnock(wrong, &knock), KnockState::kGarbage) << at;
  }
  EXPECT_EQ(ParseKnock(line_ + "\n", &knock), KnockState::kGarbage);
  EXPECT_EQ(ParseKnock(std::string(1 << 16, 'K'), &knock), KnockState::kGarbage);
  EXPECT_EQ(ParseKnock(kMakeRoom, &knock), KnockState::kGarbage);
  EXPECT_EQ(knock.nonce, KnockNonce{});
}

TEST_F(KnockTest, NeitherTokenNorSecretIsOnTheWire) {
  EXPECT_EQ(line_.find(kSession), std::string::npos);
  EXPECT_EQ(secret_.size(), 32u);
  EXPECT_NE(secret_, SecretFor(MakeKnockKey(), kSession));
  EXPECT_NE(MakeKnockNonce(), MakeKnockNonce());
}

TEST_F(KnockTest, SessionWithoutATokenHasNoSecret) {
  EXPECT_EQ(SecretFor(key_, ""), "");
}

// By Python's hashlib and hmac: another implementation must come to the same.
TEST_F(KnockTest, LinesAreWhatOthersComputeThemToBe) {
  KnockKey key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<unsigned char>(i);
  KnockNonce nonce;
  nonce.fill(0xab);
  const std::string line = FormatKnock("session", nonce);
  EXPECT_EQ(line,
            "KNOCK 3f3af1ecebbd1410ab417ec0d27bbfcb5d340e177ae159b59fc8626c2dfd9175"
            " abababababababababababababababab\n");
  EXPECT_EQ(Answer(key, line, KnockWord::kPaused),
            "paused 41e127ab96ded33bd2a54a2b203c2b6ceba8204a197a48306ccded5138e2ab64\n");
  EXPECT_EQ(Answer(key, line, KnockWord::kGone),
            "gone 5f3e3cb2ae27f8ede302a03b6016d939f033aea3d9cffb733888c1a1469a1e2f\n");
}

}  // namespace
}  // namespace muster::rendezvous
