#include "trainer/data/open_csv.h"

#include <memory>
#include <utility>

#include "trainer/data/datasets/table_dataset.h"

namespace muster::trainer {

absl::StatusOr<Splits> OpenCsv(const TableOptions& options) {
  auto table = ReadTable(options);
  if (!table.ok()) return table.status();
  const auto columns = static_cast<std::int64_t>(table->facts.columns.size());
  const auto classes = static_cast<std::int64_t>(table->classes.size());
  return Splits{std::make_shared<TableDataset>(std::move(table->train), columns, classes),
                std::make_shared<TableDataset>(std::move(table->test), columns, classes),
                std::move(table->facts)};
}

}  // namespace muster::trainer
