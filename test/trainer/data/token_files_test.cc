#include "trainer/data/samples/token_files.h"

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "trainer/text/tokenizer.h"
#include "trainer/text/tokenizer_file.h"

namespace muster::trainer {
namespace {

template <typename Token>
std::string AsFile(const std::vector<Token>& tokens) {
  return std::string(reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(Token));
}

std::vector<std::uint32_t> TokensOf(const TokenRange& range) {
  std::vector<std::uint32_t> tokens;
  for (std::int64_t i = 0; i < range.size; ++i) tokens.push_back(TokenAt(range, i));
  return tokens;
}

class TokenFilesTest : public testing::Test {
 protected:
  std::string Refusal(const std::string& path, TokenType type, std::int64_t vocabulary) const {
    const auto ranges = MapTokens({path}, type, vocabulary);
    EXPECT_EQ(ranges.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(ranges.status().message());
  }

  const test::TempDir dir_;
};

TEST_F(TokenFilesTest, AFileIsItsTokens) {
  const std::string small = dir_.Write("a.bin", AsFile<std::uint16_t>({5, 65535, 0}));
  const std::string large = dir_.Write("b.bin", AsFile<std::uint32_t>({7, 70000}));
  const auto both = MapTokens({small, small}, TokenType::kUint16, 65536);
  ASSERT_TRUE(both.ok()) << both.status();
  ASSERT_EQ(both->size(), 2u);
  EXPECT_EQ(TokensOf((*both)[1]), (std::vector<std::uint32_t>{5, 65535, 0}));
  const auto one = MapTokens({large}, TokenType::kUint32, 100'000);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(TokensOf(one->front()), (std::vector<std::uint32_t>{7, 70000}));
  const auto bytes = MapBytes({dir_.Write("c.txt", "hi")});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(TokensOf(bytes->front()), (std::vector<std::uint32_t>{'h', 'i'}));
}

TEST_F(TokenFilesTest, ATokenOutsideOfTheVocabularyIsNamedWithItsPlace) {
  const std::string path = dir_.Write("a.bin", AsFile<std::uint16_t>({5, 6, 50257}));
  EXPECT_EQ(Refusal(path, TokenType::kUint16, 50257),
            "read " + path +
                ": its token 2, at byte 4, is 50257, which is outside of the vocabulary of 50257; "
                "--vocabulary or --token-type (uint16) does not fit this file");
  EXPECT_TRUE(MapTokens({path}, TokenType::kUint16, 50258).ok());
}

TEST_F(TokenFilesTest, AFileOfAnotherTypeIsFoundOut) {
  const std::string odd = dir_.Write("odd.bin", "12345");
  EXPECT_EQ(Refusal(odd, TokenType::kUint16, 65536),
            "read " + odd +
                ": 5 bytes are not a whole number of uint16 tokens; files of tokens have no header "
                "and nothing else");
  // All of its halves are in the vocabulary: it would be accepted, with every other token 0.
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < 100; ++i) tokens.push_back(i * 7);
  const std::string wide = dir_.Write("wide.bin", AsFile(tokens));
  EXPECT_EQ(Refusal(wide, TokenType::kUint16, 65536),
            "read " + wide + ": every other token is 0: it looks like --token-type uint32");
  EXPECT_TRUE(MapTokens({wide}, TokenType::kUint32, 65536).ok());
  EXPECT_EQ(Refusal(dir_.Path("none.bin"), TokenType::kUint16, 65536),
            "read " + dir_.Path("none.bin") + ": No such file or directory");
}

TEST_F(TokenFilesTest, TextsBecomeTokensInMemory) {
  const auto tokenizer = ReadTokenizer("test/trainer/text/testdata/gpt2.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  // Longer than the pieces that are encoded at a time.
  std::string text;
  while (text.size() < 2'500'000) text += "The trainer's trains, 2026.\n";
  const auto ranges =
      EncodeTexts({dir_.Write("a.txt", "the"), dir_.Write("b.txt", text)}, **tokenizer);
  ASSERT_TRUE(ranges.ok()) << ranges.status();
  EXPECT_EQ(TokensOf((*ranges)[0]), Encode(**tokenizer, "the"));
  EXPECT_EQ(TokensOf((*ranges)[1]), Encode(**tokenizer, text));
  EXPECT_EQ((*ranges)[1].type, TokenType::kUint16);
}

}  // namespace
}  // namespace muster::trainer
