#include "trainer/app/commands.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/temp_dir.h"
#include "trainer/text/tokenizer.h"
#include "trainer/text/tokenizer_file.h"

namespace muster::trainer {
namespace {

constexpr char kTokenizer[] = "test/trainer/text/testdata/gpt2.json";

class TokenizeTest : public testing::Test {
 protected:
  // Runs it with `arguments` behind --tokenizer and --output.
  absl::StatusOr<int> Run(const std::vector<std::string>& arguments, bool terminal = false) {
    std::vector<std::string> all = {"tokenize", "--tokenizer", kTokenizer, "--output",
                                    dir_.Path("out.bin")};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<const char*> argv;
    for (const std::string& argument : all) argv.push_back(argument.c_str());
    out_.str("");
    return Tokenize(static_cast<int>(argv.size()), argv.data(), in_, out_, terminal);
  }

  // The tokens of the file, read as numbers of `width` bytes.
  std::vector<TokenId> Written(std::size_t width) const {
    const std::string bytes = test::ReadAll(dir_.Path("out.bin"));
    std::vector<TokenId> tokens;
    for (std::size_t at = 0; at < bytes.size(); at += width) {
      TokenId token = 0;
      for (std::size_t i = 0; i < width; ++i) {
        token |= static_cast<TokenId>(static_cast<unsigned char>(bytes[at + i])) << 8 * i;
      }
      tokens.push_back(token);
    }
    return tokens;
  }

  std::vector<TokenId> Expected(const std::string& text) const {
    const auto tokenizer = ReadTokenizer(kTokenizer);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return Encode(**tokenizer, text);
  }

  const test::TempDir dir_;
  std::istringstream in_;
  std::ostringstream out_;
};

TEST_F(TokenizeTest, FilesBecomeTokensInTheirOrder) {
  std::string text;
  while (text.size() < 3'000'000) text += "It's the trainer; trains aren't, 2026.\n";
  const auto run = Run({dir_.Write("a.txt", "the end"), dir_.Write("b.txt", text)});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(*run, 0);
  std::vector<TokenId> expected = Expected("the end");
  for (const TokenId token : Expected(text)) expected.push_back(token);
  EXPECT_EQ(Written(2), expected);
  EXPECT_NE(out_.str().find("out.bin: " + std::to_string(expected.size()) +
                            " uint16 tokens of a vocabulary of 480, from " +
                            std::to_string(text.size() + 7) + " bytes: "),
            std::string::npos)
      << out_.str();
  EXPECT_NE(out_.str().find(" %, 1.0 MB of 3.0 MB, "), std::string::npos) << out_.str();
}

TEST_F(TokenizeTest, EachFileCanBeADocument) {
  const std::string a = dir_.Write("a.txt", "the ");
  ASSERT_TRUE(Run({"--end-with", "<|endoftext|>", "--token-type", "uint32", a, a}).ok());
  EXPECT_EQ(Written(4), Expected("the <|endoftext|>the <|endoftext|>"));
  EXPECT_EQ(Run({"--end-with", "the", a}).status().message(),
            std::string("tokenize: --end-with the: ") + kTokenizer + " has no such added token");
}

TEST_F(TokenizeTest, TheStandardInputIsAFile) {
  in_.str("from a pipe");
  ASSERT_TRUE(Run({"-"}, /*terminal=*/true).ok());
  EXPECT_EQ(Written(2), Expected("from a pipe"));
  EXPECT_EQ(out_.str().find('\r'), std::string::npos)
      << "it was over before there was anything to say";
}

TEST_F(TokenizeTest, AMistakeIsOneSentenceAndLeavesNothing) {
  const std::string a = dir_.Write("a.txt", "text");
  const std::pair<std::vector<std::string>, std::string> mistakes[] = {
      {{}, "tokenize: FILE is required; --help lists the flags"},
      {{a, "--token-type", "int8"}, "--token-type"},
      {{"/no/such"}, "read /no/such: No such file or directory"},
      {{a, dir_.path()}, "read " + dir_.path() + ": Is a directory"},
      {{a, "--tokenizer", a}, "read tokenizer " + a + ": it is not a tokenizer.json"},
      {{a, "--output", "/no/such/out.bin"}, "/no/such/out.bin"},
      // The text was overwritten by its tokens.
      {{a, "--output", a}, "tokenize: --output " + a + " would overwrite " + a},
  };
  for (const auto& [arguments, sentence] : mistakes) {
    const auto run = Run(arguments);
    EXPECT_EQ(run.status().code(), absl::StatusCode::kInvalidArgument) << sentence;
    EXPECT_NE(run.status().message().find(sentence), std::string::npos) << run.status();
    EXPECT_EQ(run.status().message().find('\n'), std::string::npos) << run.status();
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      EXPECT_FALSE(entry.path().filename().string().starts_with("out.bin")) << entry.path();
    }
  }
}

}  // namespace
}  // namespace muster::trainer
