// Tokens such as <|endoftext|>, which are found in the text as they are rather than by merging.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/text/byte_pairs.h"

namespace muster::trainer {

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

}  // namespace muster::trainer
