#include "trainer/data/samples/token_files.h"

#include <gtest/gtest.h>

#include <limits>

#include "test/support/temp_dir.h"

namespace muster::trainer {
namespace {

constexpr char kTokenizer[] = "test/trainer/text/testdata/gpt2.json";

std::string Tokens(std::uint16_t first, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    const int token = first + i;
    bytes += {static_cast<char>(token & 0xff), static_cast<char>(token >> 8)};
  }
  return bytes;
}

// The first input of the first window.
std::int64_t FirstOf(const TokenWindows& windows) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(2 * windows.context()));
  windows.Copy(0, 0, numbers.data(), numbers.data() + windows.context());
  return numbers[0];
}

class TokenSplitsTest : public testing::Test {
 protected:
  static std::string Refusal(TokenSource source, const DataOptions& options) {
    const auto splits = OpenTokenSplits(source, options);
    EXPECT_EQ(splits.status().code(), absl::StatusCode::kInvalidArgument) << splits.status();
    return std::string(splits.status().message());
  }

  const test::TempDir dir_;
};

TEST_F(TokenSplitsTest, TheEndOfAllFilesIsKeptForTesting) {
  DataOptions options{
      .paths = {dir_.Write("a.bin", Tokens(0, 300)), dir_.Write("b.bin", Tokens(1000, 200))},
      .context = 10,
      .test_share = 0.2,
      .vocabulary = 2000};
  const auto splits = OpenTokenSplits(TokenSource::kTokens, options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train.size(), 29 + 9);  // of 300 and of 100
  EXPECT_EQ(splits->test.size(), 9);
  EXPECT_EQ(FirstOf(splits->test), 1100);
}

TEST_F(TokenSplitsTest, WhatIsNamedForTestingIsMeasuredOn) {
  DataOptions options{
      .paths = {dir_.Write("train.bin", Tokens(0, 300))}, .context = 10, .vocabulary = 2000};
  dir_.Write("val.bin", Tokens(500, 30));
  const auto beside = OpenTokenSplits(TokenSource::kTokens, options);
  ASSERT_TRUE(beside.ok()) << beside.status();
  EXPECT_EQ(beside->train.size(), 29);
  EXPECT_EQ(FirstOf(beside->test), 500);
  options.test_paths = {dir_.Write("other.bin", Tokens(900, 30))};
  EXPECT_EQ(FirstOf(OpenTokenSplits(TokenSource::kTokens, options)->test), 900);
  options.test_paths = {dir_.Write("short.bin", Tokens(900, 19))};
  EXPECT_EQ(
      Refusal(TokenSource::kTokens, options),
      "read " + dir_.Path("short.bin") + ": its 19 tokens are too few for windows of 10 tokens");
}

TEST_F(TokenSplitsTest, ATokenizerDecidesTheVocabulary) {
  std::string text;
  while (text.size() < 2000) text += "The training of the trainer, and the rest. ";
  DataOptions options{.paths = {dir_.Write("a.txt", text)}, .context = 16, .tokenizer = kTokenizer};
  const auto splits = OpenTokenSplits(TokenSource::kText, options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train.vocabulary(), 480);
  EXPECT_LT(splits->train.size() * 16, 1500) << "tokens are fewer than bytes";
  // Rounded sizes are faster to multiply.
  options.vocabulary = 512;
  EXPECT_EQ(OpenTokenSplits(TokenSource::kText, options)->train.vocabulary(), 512);
  options.vocabulary = 479;
  EXPECT_EQ(Refusal(TokenSource::kText, options),
            "--vocabulary 479 is less than the 480 tokens that there are");
  options.tokenizer = "/no/such";
  EXPECT_EQ(Refusal(TokenSource::kText, options),
            "read tokenizer /no/such: No such file or directory");
}

TEST_F(TokenSplitsTest, GeneratedTextIsEncodedAsWell) {
  DataOptions options{.context = 16};
  const auto bytes = OpenTokenSplits(TokenSource::kGenerated, options);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->train.vocabulary(), 256);
  options.tokenizer = kTokenizer;
  const auto tokens = OpenTokenSplits(TokenSource::kGenerated, options);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->train.vocabulary(), 480);
  EXPECT_LT(tokens->train.size(), bytes->train.size());
}

TEST_F(TokenSplitsTest, TokensNeedAVocabulary) {
  DataOptions options{.paths = {dir_.Write("a.bin", Tokens(0, 400))}, .context = 10};
  EXPECT_EQ(Refusal(TokenSource::kTokens, options),
            "tokens need --vocabulary, how many different ones there are, or --tokenizer");
  options.tokenizer = kTokenizer;
  EXPECT_EQ(OpenTokenSplits(TokenSource::kTokens, options)->train.vocabulary(), 480);
  options.tokenizer.clear();
  // Too many for uint16, so it is read as uint32.
  options.vocabulary = 100'000;
  EXPECT_EQ(Refusal(TokenSource::kTokens, options),
            "read " + dir_.Path("a.bin") +
                ": its token 1, at byte 4, is 196610, which is outside of the "
                "vocabulary of 100000; --vocabulary or --token-type (uint32) "
                "does not fit this file");
  options.token_type = TokenType::kUint16;
  EXPECT_TRUE(OpenTokenSplits(TokenSource::kTokens, options).ok());
}

TEST_F(TokenSplitsTest, WhatIsTooShortIsRefusedInASentence) {
  const std::string path = dir_.Write("short", std::string(100, 'a'));
  DataOptions text{.paths = {path}, .context = 10};
  EXPECT_EQ(Refusal(TokenSource::kText, text),
            "read " + path +
                ": its 100 bytes are too few for windows of 10 bytes with a share "
                "of 0.1 kept for testing");
  text.context = std::numeric_limits<std::int64_t>::max();
  EXPECT_NE(Refusal(TokenSource::kText, text).find("too few"), std::string::npos);
  text.context = 0;
  EXPECT_EQ(Refusal(TokenSource::kText, text), "a context of 0 tokens: it must be at least 1");
  text.context = 1;
  text.test_share = 1;
  EXPECT_EQ(Refusal(TokenSource::kText, text),
            "a test share of 1 of the text: it must be between 0 and 1");
  text.test_share = 0.5;
  text.context = 100;
  text.paths = {path, path, path};
  EXPECT_EQ(Refusal(TokenSource::kText, text),
            "read 3 files: their 300 bytes are too few for windows of 100 bytes "
            "with a share of 0.5 kept for testing");
}

}  // namespace
}  // namespace muster::trainer
