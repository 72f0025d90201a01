#include "trainer/text/added_tokens.h"

#include <algorithm>
#include <utility>

namespace muster::trainer {

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return a.text.size() > b.text.size();
  });
  for (const AddedToken& token : tokens_) {
    begins_[static_cast<unsigned char>(token.text.front())] = true;
    longest_ = std::max(longest_, token.text.size());
  }
}

std::optional<AddedTokens::Found> AddedTokens::Find(std::string_view text, std::size_t from) const {
  if (tokens_.empty()) return std::nullopt;
  for (std::size_t at = from; at < text.size(); ++at) {
    if (!begins_[static_cast<unsigned char>(text[at])]) continue;
    const std::string_view rest = text.substr(at);
    for (const AddedToken& token : tokens_) {
      if (rest.starts_with(token.text)) return Found{at, &token};
    }
  }
  return std::nullopt;
}

}  // namespace muster::trainer
