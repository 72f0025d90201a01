// A byte-level byte-pair tokenizer, such as GPT-2's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "trainer/text/word_rule.h"

namespace muster::trainer {

// Byte-pair encoding: merges the bytes of a word pairwise into tokens.

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
  // word that equals the bytes of a token in `whole_words` becomes that token regardless of merges
  // (ignore_merges in tokenizer.json).
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

// Tokens such as <|endoftext|>, which are searched for in the text, not merged from bytes.

struct AddedToken {
  std::string text;  // must not be empty
  TokenId id = 0;
};

// Finds added tokens in text. Immutable; may be used from any thread.
class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);

  const std::vector<AddedToken>& all() const { return tokens_; }
  // The length of the longest one in bytes; 0 if there is none.
  std::size_t longest() const { return longest_; }

  struct Found {
    std::size_t begin = 0;
    const AddedToken* token = nullptr;
  };
  // Returns the first one in `text` at or after byte `from`; the longest if several begin there.
  std::optional<Found> Find(std::string_view text, std::size_t from) const;

 private:
  std::vector<AddedToken> tokens_;  // longer ones first
  std::array<bool, 256> begins_{};  // whether one begins with this byte
  std::size_t longest_ = 0;
};

// The vocabulary of a tokenizer and the rules for encoding. Use ReadTokenizer() to read one from a
// file, Encode() or TextEncoder to encode; this class decodes. Any bytes can be encoded, and
// decoding restores them exactly. Immutable; may be used from any thread.
class Tokenizer {
 public:
  // `bytes_of` has the bytes of each token by number, empty for unused numbers.
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

// Encodes text as tokens.

// Returns the tokens of a whole text, without special tokens at its ends. Bytes that are not UTF-8
// are treated as punctuation.
std::vector<TokenId> Encode(const Tokenizer& tokenizer, std::string_view text);

// Encodes text that arrives in pieces, split anywhere: the tokens are those of the whole text.
// Keeps only the end of the text, as far as its encoding depends on what follows, and a cache of
// words. Not thread-safe.
class TextEncoder {
 public:
  // `tokenizer` must outlive this object.
  explicit TextEncoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  TextEncoder(const TextEncoder&) = delete;
  TextEncoder& operator=(const TextEncoder&) = delete;

  // Continues with `text`. Appends the tokens that no later text can change.
  void Add(std::string_view text, std::vector<TokenId>* tokens);

  // Ends the text: appends the remaining tokens. The next Add() begins a new text.
  void Finish(std::vector<TokenId>* tokens);

 private:
  // The tokens of a word, in word_tokens_.
  struct Span {
    std::uint32_t begin;
    std::uint32_t count;
  };

  // Encodes rest_ as far as its tokens are final, or all of it if `complete`.
  void Encode(bool complete, std::vector<TokenId>* tokens);
  // Encodes the words of `text`, which contains no added tokens. Returns where the first word
  // begins that is not final.
  std::size_t EncodeWords(std::string_view text, bool complete, std::vector<TokenId>* tokens);
  void EncodeWord(std::string_view word, std::vector<TokenId>* tokens);

  const Tokenizer& tokenizer_;
  std::string rest_;           // not encoded yet
  std::size_t try_again_ = 0;  // the size of rest_ at which Add() tries
  absl::flat_hash_map<std::string, Span> words_;
  std::vector<TokenId> word_tokens_;
};

}  // namespace muster::trainer
