#include "trainer/text/byte_pairs.h"

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

// A token of a word on its way, and who stands beside it. The left one of two that are merged
// becomes the new token; the right one is gone.
struct Part {
  TokenId token;
  std::size_t before;
  std::size_t after;
  bool gone = false;
};

// Two neighbours that can be merged, unless one of them has been since.
struct Candidate {
  std::uint32_t rank;
  std::size_t left;
  TokenId merged;

  // For a queue that gives the greatest first: the lowest rank, then the leftmost.
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
                     .before = at - 1,  // kNobody of the first
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
    if (learned == nullptr || learned->merged != best.merged) continue;  // no longer these two
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

}  // namespace muster::trainer
