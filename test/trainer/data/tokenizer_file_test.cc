#include "trainer/text/tokenizer_file.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "test/support/temp_dir.h"
#include "trainer/text/tokenizer.h"

namespace muster::trainer {
namespace {

using nlohmann::json;

constexpr char kGpt2[] = "test/trainer/text/testdata/gpt2.json";
constexpr char kGpt4[] = "test/trainer/text/testdata/gpt4.json";

// The error for the file `path` after `change`.
std::string Refusal(const char* path, const std::function<void(json&)>& change) {
  json file = json::parse(test::ReadAll(path));
  change(file);
  const auto tokenizer = ParseTokenizer(file.dump());
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(tokenizer.status().message());
}

constexpr char kOnly[] =
    ", which is not supported: only byte-level BPE is, as GPT-2, GPT-4 and Llama 3 have it";

TEST(TokenizerFileTest, HoldsVocabularyAndAddedTokens) {
  const auto tokenizer = ReadTokenizer(kGpt2);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocabulary(), 480);
  EXPECT_EQ((*tokenizer)->FindAdded("<|endoftext|>"), 476u);
  EXPECT_EQ((*tokenizer)->FindAdded("the"), std::nullopt);
  EXPECT_EQ((*tokenizer)->BytesOf(476), "<|endoftext|>");
  EXPECT_EQ((*tokenizer)->BytesOf(220), " ");
  EXPECT_EQ((*tokenizer)->BytesOf(480), "");
  // Single tokens of an emoji are not characters.
  const std::vector<TokenId> emoji = Encode(**tokenizer, "\U0001f469");
  ASSERT_GT(emoji.size(), 1u);
  EXPECT_EQ((*tokenizer)->Decode(emoji), "\U0001f469");
}

TEST(TokenizerFileTest, APartThatIsNotSupportedIsNamed) {
  const std::pair<std::function<void(json&)>, std::string> cases[] = {
      {[](json& f) {
         f["normalizer"] = {{"type", "NFC"}};
       },
       "its normalizer is NFC"},
      {[](json& f) {
         f["pre_tokenizer"] = {{"type", "Metaspace"}};
       },
       "its pre_tokenizer is or has Metaspace"},
      {[](json& f) { f["pre_tokenizer"] = nullptr; }, "it has no pre_tokenizer"},
      {[](json& f) { f["pre_tokenizer"]["add_prefix_space"] = true; },
       "its pre_tokenizer puts a space before each text (add_prefix_space)"},
      {[](json& f) { f["pre_tokenizer"]["use_regex"] = false; },
       "its pre_tokenizer does not split into words"},
      {[](json& f) {
         f["decoder"] = {{"type", "WordPiece"}};
       },
       "its decoder is WordPiece"},
      {[](json& f) { f["model"]["type"] = "Unigram"; }, "its model is Unigram"},
      {[](json& f) { f["model"]["dropout"] = 0.1; },
       "its model leaves out merges at random (dropout)"},
      {[](json& f) { f["model"]["end_of_word_suffix"] = "</w>"; },
       "its model has end_of_word_suffix"},
      {[](json& f) { f["model"]["byte_fallback"] = true; },
       "its model falls back to bytes (byte_fallback)"},
      {[](json& f) { f["added_tokens"][0]["lstrip"] = true; },
       "its added token <|endoftext|> has lstrip"},
  };
  for (const auto& [change, part] : cases) EXPECT_EQ(Refusal(kGpt2, change), part + kOnly);

  const std::pair<std::function<void(json&)>, std::string> splits[] = {
      {[](json& s) { s[0]["pattern"]["Regex"] = "\\s+"; },
       "its pre_tokenizer splits by an unknown regular expression"},
      {[](json& s) { s[0]["behavior"] = "Removed"; },
       "its pre_tokenizer drops or joins what it splits"},
      {[](json& s) { s[1]["use_regex"] = true; }, "its pre_tokenizer splits twice"},
      {[](json& s) {
         s[0] = {{"type", "Digits"}};
       },
       "its pre_tokenizer is or has Digits"},
      {[](json& s) { s = 7; }, "its pre_tokenizer is or has Sequence"},
  };
  for (const auto& [change, part] : splits) {
    EXPECT_EQ(Refusal(kGpt4, [&](json& f) { change(f["pre_tokenizer"]["pretokenizers"]); }),
              part + kOnly);
  }
}

TEST(TokenizerFileTest, DamageIsNamed) {
  const std::pair<std::function<void(json&)>, std::string> cases[] = {
      {[](json& f) { f["model"].erase("vocab"); }, "its model has no vocab"},
      {[](json& f) { f["model"].erase("merges"); }, "its model has no merges"},
      {[](json& f) { f["model"]["vocab"].erase("a"); }, "its vocab has no \"a\", byte 97"},
      {[](json& f) { f["model"]["vocab"]["a"] = -1; }, "token \"a\" has no usable number"},
      {[](json& f) { f["model"]["vocab"]["a"] = 1e9; }, "token \"a\" has no usable number"},
      {[](json& f) { f["model"]["vocab"]["a"] = 1 << 30; }, "token \"a\" has no usable number"},
      {[](json& f) { f["model"]["merges"][3] = "a zebra"; },
       "merge 3 (a zebra) is not of tokens in its vocab"},
      {[](json& f) { f["model"]["merges"][3] = 3; }, "merge 3 ( ) is not of tokens in its vocab"},
      {[](json& f) { f["added_tokens"][0]["content"] = ""; },
       "an added token has no content or no usable id"},
      {[](json& f) { f["added_tokens"] = 3; }, "an added token has no content or no usable id"},
  };
  for (const auto& [change, what] : cases) {
    EXPECT_EQ(Refusal(kGpt2, change), "it is damaged: " + what);
  }
  EXPECT_EQ(Refusal(kGpt2, [](json& f) { f = json::array({1}); }),
            "it is not a tokenizer.json: no JSON with a model in it");
  // Truncated anywhere, it is refused without crashing.
  const std::string text = test::ReadAll(kGpt2);
  for (std::size_t size = 0; size < text.size() - 2; size += 97) {
    EXPECT_FALSE(ParseTokenizer(text.substr(0, size)).ok());
  }
}

TEST(TokenizerFileTest, AFileThatCannotBeReadIsNamed) {
  const test::TempDir dir;
  const auto refusal = [](const std::string& path) {
    return std::string(ReadTokenizer(path).status().message());
  };
  EXPECT_EQ(refusal("/no/such"), "read tokenizer /no/such: No such file or directory");
  EXPECT_EQ(refusal(dir.path()), "read tokenizer " + dir.path() + ": Is a directory");
  const std::string empty = dir.Write("empty.json", "");
  EXPECT_EQ(refusal(empty), "read tokenizer " + empty + ": it is empty");
  const std::string other = dir.Write("other.json", "{\"a\": 1}");
  EXPECT_EQ(refusal(other),
            "read tokenizer " + other + ": it is not a tokenizer.json: no JSON with a model in it");
}

}  // namespace
}  // namespace muster::trainer
