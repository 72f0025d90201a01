#include "trainer/text/tokenizer.h"

#include <utility>

namespace muster::trainer {

Tokenizer::Tokenizer(WordRule rule, BytePairs pairs, AddedTokens added,
                     std::vector<std::string> bytes_of)
    : rule_(rule),
      pairs_(std::move(pairs)),
      added_(std::move(added)),
      bytes_of_(std::move(bytes_of)) {}

std::string Tokenizer::Decode(const std::vector<TokenId>& tokens) const {
  std::string text;
  for (const TokenId token : tokens) text += BytesOf(token);
  return text;
}

std::string_view Tokenizer::BytesOf(TokenId token) const {
  return token < bytes_of_.size() ? bytes_of_[token] : std::string_view();
}

std::optional<TokenId> Tokenizer::FindAdded(std::string_view text) const {
  for (const AddedToken& token : added_.all()) {
    if (token.text == text) return token.id;
  }
  return std::nullopt;
}

}  // namespace muster::trainer
