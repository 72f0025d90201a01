#include "trainer/data/datasets/table_dataset.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace muster::trainer {

DataShape TableDataset::shape() const {
  return {.kind = DataShape::Kind::kTable,
          .channels = 1,
          .height = 1,
          .width = columns_,
          .classes = classes_};
}

Batch TableDataset::Gather(const std::vector<std::int64_t>& indices, std::int64_t /*epoch*/,
                           bool /*train*/) const {
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{at::empty({count, 1, 1, columns_}, at::kFloat), at::empty({count}, at::kLong)};
  auto* values = batch.inputs.data_ptr<float>();
  auto* labels = batch.targets.data_ptr<std::int64_t>();
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= size()) {
      throw std::out_of_range("no row " + std::to_string(index) + " among " +
                              std::to_string(size()));
    }
    values = std::copy_n(rows_.values.data() + index * columns_, columns_, values);
    *labels++ = rows_.labels[static_cast<std::size_t>(index)];
  }
  return batch;
}

}  // namespace muster::trainer
