#include "trainer/data/open_csv.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/datasets/table_dataset.h"

namespace muster::trainer {

absl::StatusOr<Splits> OpenCsv(const TableOptions& options) {
  auto table = ReadTable(options);
  if (!table.ok()) return table.status();
  const auto columns = static_cast<std::int64_t>(table->facts.columns.size());
  const std::vector<std::string>& names =
      options.known.classes.empty() ? table->facts.classes : options.known.classes;
  const auto classes = static_cast<std::int64_t>(names.size());
  const auto rows = [&](TableRows split) -> std::shared_ptr<const Dataset> {
    return std::make_shared<TableDataset>(std::move(split), columns, classes);
  };
  const bool divided = table->test.count() > 0;
  Splits splits{.train = rows(std::move(table->train)), .facts = std::move(table->facts)};
  splits.test = divided ? rows(std::move(table->test)) : splits.train;
  return splits;
}

}  // namespace muster::trainer
