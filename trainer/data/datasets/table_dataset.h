// Rows of a table, as tensors.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/tables/table.h"

namespace muster::trainer {

// Keeps a table in memory. A batch's inputs are B x 1 x 1 x columns, float32; there is nothing to
// augment.
class TableDataset : public Dataset {
 public:
  // Each row of `rows` has `columns` numbers.
  TableDataset(TableRows rows, std::int64_t columns, std::int64_t classes)
      : rows_(std::move(rows)), columns_(columns), classes_(classes) {}

  std::int64_t size() const override { return rows_.count(); }
  DataShape shape() const override;
  Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
               bool train) const override;

 private:
  const TableRows rows_;
  const std::int64_t columns_;
  const std::int64_t classes_;
};

}  // namespace muster::trainer
