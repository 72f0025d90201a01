#include "trainer/data/dataset.h"

namespace muster::trainer {

Batch BatchRows(const Batch& batch, std::int64_t begin, std::int64_t count) {
  Batch rows = {batch.inputs.narrow(0, begin, count), batch.targets.narrow(0, begin, count)};
  for (const at::Tensor& other : batch.others) rows.others.push_back(other.narrow(0, begin, count));
  return rows;
}

}  // namespace muster::trainer
