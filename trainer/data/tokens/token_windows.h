// The samples of text data: windows of tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/tokens/token_range.h"

namespace muster::trainer {

// Consecutive windows of `context` tokens without overlap, over several ranges; no window crosses
// from one range into the next. A sample's targets are its inputs shifted by one token. In
// training, all windows of an epoch are shifted by 0 to context - 1 tokens, drawn from (seed,
// epoch), so that over many epochs each token is seen at every position of a window.
class TokenWindows {
 public:
  // `context` and `vocabulary` must be at least 1.
  TokenWindows(std::vector<TokenRange> ranges, std::int64_t context, std::int64_t vocabulary,
               std::uint64_t seed);

  std::int64_t context() const { return context_; }
  std::int64_t vocabulary() const { return vocabulary_; }

  // The sum of (tokens - context) / context over all ranges, without those of less than 2 * context
  // tokens: leaves out the window that an epoch's shift may cut off.
  std::int64_t size() const { return first_window_.back(); }

  // Returns the shift of the training windows in `epoch`.
  std::int64_t ShiftOf(std::int64_t epoch) const;

  // Writes window `index`, in [0, size()), shifted by `shift` tokens: `context` numbers to each of
  // `inputs` and `targets`. Throws std::invalid_argument, with one sentence that names file and
  // position, if a token is outside of the vocabulary.
  void Copy(std::int64_t index, std::int64_t shift, std::int64_t* inputs,
            std::int64_t* targets) const;

 private:
  std::vector<TokenRange> ranges_;
  std::int64_t context_;
  std::int64_t vocabulary_;
  std::uint64_t seed_;
  std::vector<std::int64_t> first_window_;  // index of each range's first window, then size()
};

}  // namespace muster::trainer
