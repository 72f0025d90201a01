#include "trainer/text/text_encoder.h"

#include <algorithm>

#include "absl/strings/string_view.h"

namespace muster::trainer {
namespace {

// Longer words hardly come again.
constexpr std::size_t kLongestKeptWord = 48;
// About 8 MB. A text with more different words than this starts over: what is frequent is soon
// back.
constexpr std::size_t kMostKeptWords = std::size_t{1} << 16;

}  // namespace

std::vector<TokenId> Encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> tokens;
  TextEncoder encoder(tokenizer);
  encoder.Add(text, &tokens);
  encoder.Finish(&tokens);
  return tokens;
}

void TextEncoder::Add(std::string_view text, std::vector<TokenId>* tokens) {
  rest_ += text;
  if (rest_.size() < try_again_) return;
  Encode(/*complete=*/false, tokens);
  // A word that does not end is looked through again when there is twice as much of it: as often
  // as pieces come, a gigabyte of spaces would take for ever.
  try_again_ = 2 * rest_.size();
}

void TextEncoder::Finish(std::vector<TokenId>* tokens) {
  Encode(/*complete=*/true, tokens);
  try_again_ = 0;
}

void TextEncoder::Encode(bool complete, std::vector<TokenId>* tokens) {
  const AddedTokens& added = tokenizer_.added();
  const std::string_view text = rest_;
  // Where an added token may begin that does not end within `text`, or a longer one than is seen.
  const std::size_t certain = complete || added.longest() == 0
                                  ? text.size()
                                  : text.size() - std::min(text.size(), added.longest() - 1);
  std::size_t begin = 0;
  for (;;) {
    const auto found = added.Find(text, begin);
    if (!found || found->begin >= certain) {
      const std::string_view words = text.substr(begin, certain - std::min(begin, certain));
      begin += EncodeWords(words, complete, tokens);
      break;
    }
    EncodeWords(text.substr(begin, found->begin - begin), /*complete=*/true, tokens);
    tokens->push_back(found->token->id);
    begin = found->begin + found->token->text.size();
  }
  rest_.erase(0, begin);
}

std::size_t TextEncoder::EncodeWords(std::string_view text, bool complete,
                                     std::vector<TokenId>* tokens) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t length = FirstWord(tokenizer_.rule(), text.substr(begin), complete);
    if (length == 0) break;
    EncodeWord(text.substr(begin, length), tokens);
    begin += length;
  }
  return begin;
}

void TextEncoder::EncodeWord(std::string_view word, std::vector<TokenId>* tokens) {
  if (word.size() > kLongestKeptWord) return tokenizer_.pairs().Encode(word, tokens);
  auto known = words_.find(absl::string_view(word.data(), word.size()));
  if (known == words_.end()) {
    if (words_.size() == kMostKeptWords) {
      words_.clear();
      word_tokens_.clear();
    }
    const std::size_t begin = word_tokens_.size();
    tokenizer_.pairs().Encode(word, &word_tokens_);
    known = words_
                .try_emplace(std::string(word),
                             Span{static_cast<std::uint32_t>(begin),
                                  static_cast<std::uint32_t>(word_tokens_.size() - begin)})
                .first;
  }
  const auto first = word_tokens_.begin() + known->second.begin;
  tokens->insert(tokens->end(), first, first + known->second.count);
}

}  // namespace muster::trainer
