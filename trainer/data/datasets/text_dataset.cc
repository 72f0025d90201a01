#include "trainer/data/datasets/text_dataset.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/data/loading/mixed_bits.h"

namespace muster::trainer {

TextDataset::TextDataset(TextRange text, std::int64_t context, std::uint64_t seed)
    : text_(std::move(text)), context_(context), seed_(seed) {}

std::int64_t TextDataset::size() const {
  return (text_.size - context_) / context_;
}

DataShape TextDataset::shape() const {
  return {.kind = DataShape::Kind::kText, .classes = 256, .context = context_};
}

Batch TextDataset::Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
                          bool train) const {
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{at::empty({count, context_}, at::kLong), at::empty({count, context_}, at::kLong)};
  auto* inputs = batch.inputs.data_ptr<std::int64_t>();
  auto* targets = batch.targets.data_ptr<std::int64_t>();
  // The same for all windows of an epoch, so that they still do not overlap.
  const std::int64_t shift = train
                                 ? static_cast<std::int64_t>(MixedBits(seed_, epoch, /*index=*/0) %
                                                             static_cast<std::uint64_t>(context_))
                                 : 0;
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= size()) {
      throw std::out_of_range("no window " + std::to_string(index) + " among " +
                              std::to_string(size()));
    }
    const std::uint8_t* from = text_.begin + index * context_ + shift;
    for (std::int64_t i = 0; i < context_; ++i) {
      *inputs++ = from[i];
      *targets++ = from[i + 1];
    }
  }
  return batch;
}

}  // namespace muster::trainer
