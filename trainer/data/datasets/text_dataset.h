// Windows of text, as tokens.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/tokens/token_windows.h"

namespace muster::trainer {

// Windows of tokens as tensors. A token outside of the vocabulary is reported when its window is
// gathered (TokenWindows).
class TextDataset : public Dataset {
 public:
  explicit TextDataset(TokenWindows windows) : windows_(std::move(windows)) {}

  std::int64_t size() const override { return windows_.size(); }
  DataShape shape() const override;
  Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
               bool train) const override;

 private:
  const TokenWindows windows_;
};

}  // namespace muster::trainer
