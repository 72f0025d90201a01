// A text as bytes, in windows.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/data/dataset.h"

namespace muster::trainer {

// Bytes [begin, begin + size) that `owner` keeps alive: a mapped file, or a string.
struct TextRange {
  std::shared_ptr<const void> owner;
  const std::uint8_t* begin = nullptr;
  std::int64_t size = 0;
};

// Windows of `context` bytes, one after the other without overlap; a sample's targets are its
// inputs moved by one byte. While training, the windows of an epoch all begin up to context - 1
// bytes later, drawn from (seed, epoch), so that over epochs every byte is seen at every place of a
// window.
class TextDataset : public Dataset {
 public:
  // `text` has at least 2 * context bytes; `context` is at least 1.
  TextDataset(TextRange text, std::int64_t context, std::uint64_t seed);

  // (bytes - context) / context: the window that an epoch's shift may cut off is not counted.
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
