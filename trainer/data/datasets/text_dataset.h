// Windows of text, as bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/data/dataset.h"

namespace muster::trainer {

// The bytes [begin, begin + size), kept alive by `owner`: a mapped file or a string.
struct TextRange {
  std::shared_ptr<const void> owner;
  const std::uint8_t* begin = nullptr;
  std::int64_t size = 0;
};

// Consecutive windows of `context` bytes without overlap. A sample's targets are its inputs shifted
// by one byte. In training, all windows of an epoch are shifted by 0 to context - 1 bytes, drawn
// from (seed, epoch), so that over many epochs each byte is seen at every position of a window.
class TextDataset : public Dataset {
 public:
  // `text` must have at least 2 * context bytes, and `context` must be at least 1.
  TextDataset(TextRange text, std::int64_t context, std::uint64_t seed);

  // (bytes - context) / context: leaves out the window that an epoch's shift may cut off.
  std::int64_t size() const override;
  DataShape shape() const override;
  Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
               bool train) const override;

 private:
  const TextRange text_;
  const std::int64_t context_;
  const std::uint64_t seed_;
};

}  // namespace muster::trainer
