#include "trainer/text/tokenizer.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/strings/string_view.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

std::uint64_t PairKey(TokenId left, TokenId right) {
  return std::uint64_t{left} << 32 | right;
}

// A token of a word being merged, and its neighbours. Of two merged parts the left one becomes the
// new token; the right one is removed.
struct Part {
  TokenId token;
  std::size_t before;
  std::size_t after;
  bool gone = false;
};

// Two neighbours that can be merged, unless one of them has changed since.
struct Candidate {
  std::uint32_t rank;
  std::size_t left;
  TokenId merged;

  // For a priority queue with the greatest on top: the lowest rank, then the leftmost.
  bool operator<(const Candidate& other) const {
    return std::tie(rank, left) > std::tie(other.rank, other.left);
  }
};

}  // namespace

BytePairs::BytePairs(const std::array<TokenId, 256>& byte_tokens,
                     const std::vector<TokenMerge>& merges,
                     absl::flat_hash_map<std::string, TokenId> whole_words)
    : byte_tokens_(byte_tokens), whole_words_(std::move(whole_words)) {
  learned_.reserve(merges.size());
  std::uint32_t rank = 0;
  for (const TokenMerge& merge : merges) {
    learned_[PairKey(merge.left, merge.right)] = {rank++, merge.merged};
  }
}

const BytePairs::Learned* BytePairs::Find(TokenId left, TokenId right) const {
  const auto found = learned_.find(PairKey(left, right));
  return found == learned_.end() ? nullptr : &found->second;
}

void BytePairs::Encode(std::string_view word, std::vector<TokenId>* tokens) const {
  if (!whole_words_.empty()) {
    if (const auto whole = whole_words_.find(absl::string_view(word.data(), word.size()));
        whole != whole_words_.end()) {
      tokens->push_back(whole->second);
      return;
    }
  }
  std::vector<Part> parts;
  parts.reserve(word.size());
  for (const char byte : word) {
    const std::size_t at = parts.size();
    parts.push_back({.token = byte_tokens_[static_cast<unsigned char>(byte)],
                     .before = at - 1,  // kNobody for the first
                     .after = at + 1 < word.size() ? at + 1 : kNobody});
  }

  std::priority_queue<Candidate> queue;
  const auto consider = [&](std::size_t left) {
    if (left == kNobody || parts[left].after == kNobody) return;
    const Learned* learned = Find(parts[left].token, parts[parts[left].after].token);
    if (learned != nullptr) queue.push({learned->rank, left, learned->merged});
  };
  for (std::size_t i = 0; i < parts.size(); ++i) consider(i);

  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Part& left = parts[best.left];
    if (left.gone || left.after == kNobody) continue;
    Part& right = parts[left.after];
    const Learned* learned = Find(left.token, right.token);
    if (learned == nullptr || learned->merged != best.merged) continue;  // the pair has changed
    left.token = best.merged;
    left.after = right.after;
    right.gone = true;
    if (left.after != kNobody) parts[left.after].before = best.left;
    consider(left.before);
    consider(best.left);
  }
  for (std::size_t i = 0; i != kNobody && i < parts.size(); i = parts[i].after) {
    tokens->push_back(parts[i].token);
  }
}

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

namespace {

// Longer words rarely repeat.
constexpr std::size_t kLongestKeptWord = 48;
// About 8 MB. A text with more different words clears the cache; frequent words soon return.
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
  // An unfinished word is scanned again only once it has doubled in size: a scan per piece would be
  // quadratic for a gigabyte of spaces.
  try_again_ = 2 * rest_.size();
}

void TextEncoder::Finish(std::vector<TokenId>* tokens) {
  Encode(/*complete=*/true, tokens);
  try_again_ = 0;
}

void TextEncoder::Encode(bool complete, std::vector<TokenId>* tokens) {
  const AddedTokens& added = tokenizer_.added();
  const std::string_view text = rest_;
  // Where an added token may begin that does not end within `text`, or a longer one that is not
  // complete yet.
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
