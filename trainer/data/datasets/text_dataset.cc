#include "trainer/data/datasets/text_dataset.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <stdexcept>
#include <string>

namespace muster::trainer {

DataShape TextDataset::shape() const {
  return {.kind = DataShape::Kind::kText,
          .classes = windows_.vocabulary(),
          .context = windows_.context()};
}

Batch TextDataset::Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
                          bool train) const {
  const std::int64_t context = windows_.context();
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{at::empty({count, context}, at::kLong), at::empty({count, context}, at::kLong)};
  auto* inputs = batch.inputs.data_ptr<std::int64_t>();
  auto* targets = batch.targets.data_ptr<std::int64_t>();
  // The same for all windows of an epoch, so that they still do not overlap.
  const std::int64_t shift = train ? windows_.ShiftOf(epoch) : 0;
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= size()) {
      throw std::out_of_range("no window " + std::to_string(index) + " among " +
                              std::to_string(size()));
    }
    windows_.Copy(index, shift, inputs, targets);
    inputs += context;
    targets += context;
  }
  return batch;
}

}  // namespace muster::trainer
