// Encodes text as tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "trainer/text/tokenizer.h"

namespace muster::trainer {

// Returns the tokens of a whole text, without special tokens at its ends. Bytes that are not UTF-8
// are treated as punctuation.
std::vector<TokenId> Encode(const Tokenizer& tokenizer, std::string_view text);

// Encodes text that arrives in pieces, which may end anywhere: the tokens are those of the whole
// text. Keeps only the end of the text, as far as its encoding depends on what follows, and a cache
// of words. Not thread-safe.
class TextEncoder {
 public:
  // `tokenizer` must outlive this object.
  explicit TextEncoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  TextEncoder(const TextEncoder&) = delete;
  TextEncoder& operator=(const TextEncoder&) = delete;

  // Continues with `text`. Appends to `tokens` those that are certain by now.
  void Add(std::string_view text, std::vector<TokenId>* tokens);

  // Ends the text: appends the remaining tokens. The next Add() begins a new text.
  void Finish(std::vector<TokenId>* tokens);

 private:
  // The tokens of a word, in word_tokens_.
  struct Span {
    std::uint32_t begin;
    std::uint32_t count;
  };

  // Encodes rest_ as far as its tokens are certain, or all of it if it is `complete`.
  void Encode(bool complete, std::vector<TokenId>* tokens);
  // Encodes the words of `text`, which has no added tokens in it. Returns where the first word
  // begins that is not certain.
  std::size_t EncodeWords(std::string_view text, bool complete, std::vector<TokenId>* tokens);
  void EncodeWord(std::string_view word, std::vector<TokenId>* tokens);

  const Tokenizer& tokenizer_;
  std::string rest_;           // not encoded yet
  std::size_t try_again_ = 0;  // the size of rest_ at which Add() tries
  absl::flat_hash_map<std::string, Span> words_;
  std::vector<TokenId> word_tokens_;
};

}  // namespace muster::trainer
