#include "trainer/text/tokenizer.h"

#include <gtest/gtest.h>

#include <map>

namespace muster::trainer {
namespace {

// A tokenizer whose single bytes have their own numbers, with the merges `merges`, each the two
// parts of a token as text. Tokens from 256 on are in the order of `merges`.
class Learner {
 public:
  explicit Learner(const std::vector<std::pair<std::string, std::string>>& merges) {
    for (int byte = 0; byte < 256; ++byte) {
      ids_[std::string(1, static_cast<char>(byte))] = static_cast<TokenId>(byte);
    }
    for (const auto& [left, right] : merges) {
      const TokenId merged =
          ids_.try_emplace(left + right, static_cast<TokenId>(ids_.size())).first->second;
      merges_.push_back({ids_.at(left), ids_.at(right), merged});
    }
  }

  // The tokens of `word`, as texts.
  std::vector<std::string> Parts(const std::string& word,
                                 absl::flat_hash_map<std::string, TokenId> whole_words = {}) const {
    std::array<TokenId, 256> bytes{};
    for (TokenId byte = 0; byte < 256; ++byte) bytes[byte] = byte;
    std::vector<TokenId> tokens;
    BytePairs(bytes, merges_, std::move(whole_words)).Encode(word, &tokens);
    std::vector<std::string> parts;
    for (const TokenId token : tokens) {
      for (const auto& [text, id] : ids_) {
        if (id == token) parts.push_back(text);
      }
    }
    return parts;
  }

  TokenId id(const std::string& text) const { return ids_.at(text); }

 private:
  std::map<std::string, TokenId> ids_;
  std::vector<TokenMerge> merges_;
};

using Parts = std::vector<std::string>;

TEST(BytePairsTest, WhatWasLearnedFirstIsMergedFirst) {
  const Learner bc_first({{"b", "c"}, {"a", "b"}, {"a", "bc"}});
  EXPECT_EQ(bc_first.Parts("abc"), (Parts{"abc"}));
  EXPECT_EQ(bc_first.Parts("ab"), (Parts{"ab"}));
  const Learner ab_first({{"a", "b"}, {"b", "c"}});
  EXPECT_EQ(ab_first.Parts("abc"), (Parts{"ab", "c"}));
}

TEST(BytePairsTest, TheLeftmostOfEqualsIsMergedFirst) {
  const Learner learner({{"a", "a"}, {"aa", "a"}, {"aa", "aa"}});
  EXPECT_EQ(learner.Parts("aaa"), (Parts{"aaa"}));
  EXPECT_EQ(learner.Parts("aaaa"), (Parts{"aaaa"}));
  EXPECT_EQ(learner.Parts("aaaaa"), (Parts{"aa", "aaa"}));
  EXPECT_EQ(learner.Parts("aaaaaaa"), (Parts{"aaaa", "aaa"}));
}

// One neighbour at a time, as Hugging Face's tokenizers do it: a merge with a higher priority than
// the one that created its part is done as soon as possible.
TEST(BytePairsTest, AMergeThatBecomesPossibleComesInItsTurn) {
  const Learner learner({{"a", "b"}, {"ab", "a"}, {"b", "ab"}});
  EXPECT_EQ(learner.Parts("abab"), (Parts{"ab", "ab"}));
  EXPECT_EQ(learner.Parts("abaab"), (Parts{"aba", "ab"}));
  EXPECT_EQ(learner.Parts("bab"), (Parts{"bab"}));
}

TEST(BytePairsTest, WithoutMergesThereAreBytes) {
  EXPECT_EQ(Learner({}).Parts(""), (Parts{}));
  EXPECT_EQ(Learner({}).Parts("ab"), (Parts{"a", "b"}));
  const std::vector<std::pair<std::string, std::string>> merge = {{"\xc3", "\xa9"}};
  const Learner learner(merge);
  EXPECT_EQ(learner.Parts("\xc3\xa9\xc3"), (Parts{"\xc3\xa9", "\xc3"}));
}

TEST(BytePairsTest, AWholeWordNeedsNoMerges) {
  const Learner learner({{"a", "b"}, {"b", "c"}, {"ab", "c"}});
  EXPECT_EQ(learner.Parts("bc", {{"abc", learner.id("abc")}}), (Parts{"bc"}));
  const Learner never({{"a", "b"}, {"c", "d"}});
  EXPECT_EQ(never.Parts("abcd", {{"abcd", 'x'}}), (Parts{"x"}));
  EXPECT_EQ(never.Parts("abcde", {{"abcd", 'x'}}), (Parts{"ab", "cd", "e"}));
}

// A file of 100,000 equal letters is one word: searching the word for each merge took minutes.
TEST(BytePairsTest, AVeryLongWordIsMergedInTime) {
  const Learner learner({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}});
  EXPECT_EQ(learner.Parts(std::string(200'000, 'a')), Parts(25'000, "aaaaaaaa"));
}

}  // namespace
}  // namespace muster::trainer
