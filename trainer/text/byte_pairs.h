// Byte-pair encoding: the bytes of a word, merged two by two into tokens.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace muster::trainer {

// The number of a token in the vocabulary.
using TokenId = std::uint32_t;

// Two adjacent tokens and the token they are merged into.
struct TokenMerge {
  TokenId left;
  TokenId right;
  TokenId merged;
};

// The merges of a tokenizer. Immutable; may be used from any thread.
class BytePairs {
 public:
  // `byte_tokens` are the tokens of single bytes. Earlier `merges` have priority over later ones. A
  // word that equals the bytes of a token in `whole_words` becomes that token, whatever the merges
  // say (ignore_merges in tokenizer.json).
  BytePairs(const std::array<TokenId, 256>& byte_tokens, const std::vector<TokenMerge>& merges,
            absl::flat_hash_map<std::string, TokenId> whole_words);

  // Appends the tokens of `word` to `tokens`. Repeatedly merges the adjacent pair with the highest
  // priority, the leftmost of equals. Takes O(n log n) for n bytes.
  void Encode(std::string_view word, std::vector<TokenId>* tokens) const;

 private:
  struct Learned {
    std::uint32_t rank;
    TokenId merged;
  };

  // Returns the merge of two adjacent tokens, or null.
  const Learned* Find(TokenId left, TokenId right) const;

  std::array<TokenId, 256> byte_tokens_;
  absl::flat_hash_map<std::uint64_t, Learned> learned_;  // by left << 32 | right
  absl::flat_hash_map<std::string, TokenId> whole_words_;
};

}  // namespace muster::trainer
