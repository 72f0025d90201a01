// Encodes the texts of testdata/*.jsonl with the tokenizer next to each. The expected tokens come
// from testdata/make.py, which shares no code with the encoder.
#include "trainer/text/tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"

#include "trainer/text/tokenizer_file.h"

namespace muster::trainer {
namespace {

constexpr char kTestdata[] = "test/trainer/text/testdata/";

struct Case {
  std::string text;
  std::vector<TokenId> tokens;
};

std::vector<Case> Cases(const std::string& name) {
  std::vector<Case> cases;
  std::ifstream file(kTestdata + name + ".jsonl");
  for (std::string line; std::getline(file, line);) {
    const base::Json json = base::ParseJson(line);
    cases.push_back({json["text"].get<std::string>(), json["tokens"].get<std::vector<TokenId>>()});
  }
  EXPECT_GT(cases.size(), 200u);
  return cases;
}

class TextEncoderTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto read = ReadTokenizer(std::string(kTestdata) + GetParam() + ".json");
    ASSERT_TRUE(read.ok()) << read.status();
    tokenizer_ = *std::move(read);
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_P(TextEncoderTest, GivesTheTokensOfTheDefinition) {
  for (const Case& each : Cases(GetParam())) {
    EXPECT_EQ(Encode(*tokenizer_, each.text), each.tokens) << "'" << each.text << "'";
  }
}

TEST_P(TextEncoderTest, TokensBecomeTheSameText) {
  for (const Case& each : Cases(GetParam())) {
    EXPECT_EQ(tokenizer_->Decode(each.tokens), each.text);
  }
}

// A file is read in pieces, which may end anywhere: in a character, a word, an added token.
TEST_P(TextEncoderTest, PiecesMayEndAnywhere) {
  TextEncoder encoder(*tokenizer_);
  for (const std::size_t piece : {1, 2, 3, 7, 50}) {
    for (const Case& each : Cases(GetParam())) {
      std::vector<TokenId> tokens;
      for (std::size_t at = 0; at < each.text.size(); at += piece) {
        encoder.Add(std::string_view(each.text).substr(at, piece), &tokens);
      }
      encoder.Finish(&tokens);
      EXPECT_EQ(tokens, each.tokens) << "'" << each.text << "' in pieces of " << piece;
    }
  }
}

TEST_P(TextEncoderTest, AnyBytesComeBack) {
  std::string bytes;
  for (unsigned i = 0; i < 20000; ++i) bytes += static_cast<char>(i * i * 31 + i * 7 + (i >> 5));
  EXPECT_EQ(tokenizer_->Decode(Encode(*tokenizer_, bytes)), bytes);
}

// Far more different words than the cache holds.
TEST_P(TextEncoderTest, WordsThatAreForgottenAreEncodedAgain) {
  TextEncoder encoder(*tokenizer_);
  std::vector<TokenId> tokens;
  std::string text;
  for (int i = 0; i < 80'000; ++i) {
    std::string word = " ";
    for (int rest = i; rest > 0; rest /= 26) word += static_cast<char>('a' + rest % 26);
    text += word;
  }
  encoder.Add(text, &tokens);
  encoder.Add(text, &tokens);
  encoder.Finish(&tokens);
  EXPECT_EQ(tokenizer_->Decode(tokens), text + text);
  EXPECT_EQ(std::vector<TokenId>(tokens.begin(), tokens.begin() + tokens.size() / 2),
            std::vector<TokenId>(tokens.begin() + tokens.size() / 2, tokens.end()));
}

// Rescanning what is kept between pieces, with each piece, would be quadratic.
TEST_P(TextEncoderTest, AWordThatDoesNotEndIsEncodedInTime) {
  TextEncoder encoder(*tokenizer_);
  std::vector<TokenId> tokens;
  const std::string piece(100, ' ');
  for (int i = 0; i < 5'000; ++i) encoder.Add(piece, &tokens);
  encoder.Finish(&tokens);
  EXPECT_EQ(tokenizer_->Decode(tokens), std::string(500'000, ' '));
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, TextEncoderTest, testing::Values("gpt2", "gpt4"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace muster::trainer
