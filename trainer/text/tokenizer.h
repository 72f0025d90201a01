// A byte-level byte-pair tokenizer, such as GPT-2's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/text/added_tokens.h"
#include "trainer/text/byte_pairs.h"
#include "trainer/text/word_rule.h"

namespace muster::trainer {

// The vocabulary of a tokenizer and the rules for encoding. To read one from a file use
// tokenizer_file.h, to encode text_encoder.h; this class decodes. Any bytes can be encoded, and
// decoding restores them exactly. Immutable; may be used from any thread.
class Tokenizer {
 public:
  // `bytes_of` holds the bytes of each token by number, empty for unused numbers.
  Tokenizer(WordRule rule, BytePairs pairs, AddedTokens added, std::vector<std::string> bytes_of);

  // The size of the vocabulary that a model needs: the largest token plus 1.
  std::int64_t vocabulary() const { return static_cast<std::int64_t>(bytes_of_.size()); }

  // Returns the bytes of `tokens`, concatenated. A single token need not be valid UTF-8: characters
  // may be split between tokens. Numbers that are not tokens give no bytes.
  std::string Decode(const std::vector<TokenId>& tokens) const;
  // The same for one token. Valid as long as this object.
  std::string_view BytesOf(TokenId token) const;

  // Returns the added token with this text, such as "<|endoftext|>".
  std::optional<TokenId> FindAdded(std::string_view text) const;

  // For TextEncoder.
  WordRule rule() const { return rule_; }
  const BytePairs& pairs() const { return pairs_; }
  const AddedTokens& added() const { return added_; }

 private:
  WordRule rule_;
  BytePairs pairs_;
  AddedTokens added_;
  std::vector<std::string> bytes_of_;
};

}  // namespace muster::trainer
