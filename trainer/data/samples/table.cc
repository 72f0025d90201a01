#include "trainer/data/samples/table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "trainer/data/samples/data_files.h"
#include "trainer/data/samples/data_options.h"
#include "trainer/data/samples/sample_order.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kMostClasses = 10'000;

// A file's contents, unprocessed.
struct RawTable {
  std::string path;
  std::vector<std::string> names;             // of all columns
  std::size_t target = 0;                     // index of the class column; past the end: none
  std::vector<double> values;                 // rows x (columns - 1)
  std::vector<std::int64_t> labels;           // indices into `classes`; -1 without a target
  std::vector<std::string> classes;           // in order of first occurrence
  std::map<std::string, std::int64_t> known;  // the numbers of known classes, by their text

  bool has_target() const { return target < names.size(); }
  std::size_t width() const { return names.size() - (has_target() ? 1 : 0); }
};

bool IsNumber(const std::string& text, double* number) {
  return absl::SimpleAtod(text, number) && std::isfinite(*number);
}

bool IsWhole(const std::string& text) {
  std::int64_t number = 0;
  return absl::SimpleAtoi(text, &number);
}

absl::Status CheckNames(const RawTable& table, std::int64_t line) {
  const std::vector<std::string>& names = table.names;
  double ignored = 0;
  if (std::all_of(names.begin(), names.end(),
                  [&](const std::string& name) { return IsNumber(name, &ignored); })) {
    return BadCsvLine(table.path, line,
                      "it has only numbers, and the first line must name the columns");
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) {
      return BadCsvLine(table.path, line,
                        absl::StrCat("column ", i + 1, " has no name; name it or leave it out"));
    }
    if (!seen.insert(names[i]).second) {
      return BadCsvLine(table.path, line, absl::StrCat("two columns are named '", names[i], "'"));
    }
  }
  return absl::OkStatus();
}

absl::Status TakeNames(CsvRow row, const std::string& target, bool needed, RawTable* table) {
  table->names = std::move(row.fields);
  const absl::Status status = CheckNames(*table, row.line);
  if (!status.ok()) return status;
  const auto found = std::find(table->names.begin(), table->names.end(), target);
  if (found == table->names.end() && needed) {
    return BadCsvLine(table->path, row.line,
                      absl::StrCat("there is no column '", target,
                                   "' for --target; the columns "
                                   "are ",
                                   absl::StrJoin(table->names, ", ")));
  }
  table->target = static_cast<std::size_t>(found - table->names.begin());
  if (table->width() < 1) {
    return BadCsvLine(table->path, row.line, "there is no column besides that of --target");
  }
  for (std::string& name : table->names) name = ReadableName(name);
  return absl::OkStatus();
}

absl::Status TakeRow(const CsvRow& row, RawTable* table) {
  if (row.fields.size() != table->names.size()) {
    return BadCsvLine(table->path, row.line,
                      absl::StrCat("it has ", row.fields.size(), " fields, and there are ",
                                   table->names.size(), " columns"));
  }
  for (std::size_t i = 0; i < row.fields.size(); ++i) {
    const std::string& field = row.fields[i];
    const auto refuse = [&](const std::string& why) {
      return Unreadable(table->path,
                        absl::StrCat("line ", row.line, ", column '", table->names[i], "': ", why));
    };
    if (field.empty()) return refuse("it is empty; fill it in, or leave the row out");
    if (i == table->target) {
      const auto [known, is_new] =
          table->known.emplace(field, static_cast<std::int64_t>(table->classes.size()));
      if (is_new) table->classes.push_back(ReadableName(field));
      if (table->classes.size() > kMostClasses) {
        return refuse(absl::StrCat("it is the target, and has more than ", kMostClasses,
                                   " different values, too many for classes"));
      }
      table->labels.push_back(known->second);
      continue;
    }
    double number = 0;
    if (!IsNumber(field, &number)) {
      return refuse(absl::StrCat("'", field.substr(0, 40),
                                 "' is not a finite number; leave the "
                                 "column out, or write numbers for what it says"));
    }
    table->values.push_back(number);
  }
  if (!table->has_target()) table->labels.push_back(-1);
  return absl::OkStatus();
}

absl::StatusOr<RawTable> ReadRaw(const std::string& path, const std::string& target, bool needed) {
  RawTable table;
  table.path = path;
  const absl::Status status = ReadCsv(path, [&](CsvRow row) {
    return table.names.empty() ? TakeNames(std::move(row), target, needed, &table)
                               : TakeRow(row, &table);
  });
  if (!status.ok()) return status;
  if (table.labels.empty())
    return Unreadable(path, "it has no rows below the names of its columns");
  return table;
}

// Gives `table` the classes `all`, and renumbers its labels accordingly.
void Renumber(const std::vector<std::string>& all, RawTable* table) {
  const std::map<std::string, std::int64_t> numbers = NumbersOf(all);
  std::vector<std::int64_t> labels;
  for (const std::string& name : table->classes) labels.push_back(numbers.at(name));
  for (std::int64_t& label : table->labels) {
    if (label >= 0) label = labels[static_cast<std::size_t>(label)];
  }
}

std::vector<std::string> SortedClasses(std::vector<std::string> classes) {
  const bool whole = std::all_of(classes.begin(), classes.end(), IsWhole);
  std::sort(classes.begin(), classes.end(), [&](const std::string& a, const std::string& b) {
    std::int64_t x = 0;
    std::int64_t y = 0;
    if (whole && absl::SimpleAtoi(a, &x) && absl::SimpleAtoi(b, &y) && x != y) return x < y;
    return a < b;
  });
  return classes;
}

// Appends row `row` of `from`, not standardized yet.
void AppendRow(const RawTable& from, std::size_t row, RawTable* to) {
  const auto begin = from.values.begin() + static_cast<std::ptrdiff_t>(row * from.width());
  to->values.insert(to->values.end(), begin, begin + static_cast<std::ptrdiff_t>(from.width()));
  to->labels.push_back(from.labels[row]);
}

std::vector<std::string> NumberColumns(const RawTable& table) {
  std::vector<std::string> names = table.names;
  if (table.has_target()) names.erase(names.begin() + static_cast<std::ptrdiff_t>(table.target));
  return names;
}

// Puts the numeric columns in the order in which the model knows them.
absl::Status PutInOrder(const std::vector<std::string>& known, RawTable* table) {
  const std::vector<std::string> here = NumberColumns(*table);
  if (here == known) return absl::OkStatus();
  const auto differs = [&](const std::vector<std::string>& of, const std::vector<std::string>& in) {
    return std::find_if(of.begin(), of.end(), [&](const std::string& name) {
      return std::find(in.begin(), in.end(), name) == in.end();
    });
  };
  if (const auto missing = differs(known, here); missing != known.end()) {
    return Unreadable(table->path, absl::StrCat("there is no column '", *missing,
                                                "', and the model was trained with one"));
  }
  if (const auto extra = differs(here, known); extra != here.end()) {
    return Unreadable(table->path, absl::StrCat("the model was trained without a column '", *extra,
                                                "'; leave the column out"));
  }
  std::vector<std::size_t> from;
  for (const std::string& name : known) {
    from.push_back(
        static_cast<std::size_t>(std::find(here.begin(), here.end(), name) - here.begin()));
  }
  std::vector<double> values;
  values.reserve(table->values.size());
  for (std::size_t row = 0; row < table->values.size(); row += table->width()) {
    for (const std::size_t column : from) values.push_back(table->values[row + column]);
  }
  table->values = std::move(values);
  if (table->has_target()) {
    std::rotate(table->names.begin() + static_cast<std::ptrdiff_t>(table->target),
                table->names.begin() + static_cast<std::ptrdiff_t>(table->target) + 1,
                table->names.end());
    table->target = known.size();
  }
  std::copy(known.begin(), known.end(), table->names.begin());
  return absl::OkStatus();
}

bool IsConstant(const RawTable& table, std::size_t column) {
  for (std::size_t i = column; i < table.values.size(); i += table.width()) {
    if (table.values[i] != table.values[column]) return false;
  }
  return !table.labels.empty();
}

// Mean and standard deviation of each column. A constant column is measured exactly: rounding would
// give it a tiny deviation, by which other data would be divided; its deviation of 0 becomes 1.
Normalization MeasureScale(const RawTable& table) {
  const std::size_t width = table.width();
  const auto rows = static_cast<double>(table.labels.size());
  Normalization scale{std::vector<double>(width), std::vector<double>(width)};
  for (std::size_t i = 0; i < table.values.size(); ++i) {
    scale.mean[i % width] += table.values[i] / rows;
  }
  for (std::size_t i = 0; i < table.values.size(); ++i) {
    const double distance = table.values[i] - scale.mean[i % width];
    scale.deviation[i % width] += distance * distance / rows;
  }
  for (std::size_t column = 0; column < width; ++column) {
    double& deviation = scale.deviation[column];
    deviation = deviation > 0 ? std::sqrt(deviation) : 1;
    if (IsConstant(table, column)) {
      scale.mean[column] = table.values[column];
      deviation = 1;
    }
  }
  return scale;
}

absl::StatusOr<TableRows> Standardized(const RawTable& table, const Normalization& scale) {
  TableRows rows;
  rows.labels = table.labels;
  rows.values.reserve(table.values.size());
  for (std::size_t i = 0; i < table.values.size(); ++i) {
    const std::size_t column = i % table.width();
    const auto value =
        static_cast<float>((table.values[i] - scale.mean[column]) / scale.deviation[column]);
    if (!std::isfinite(value) || !std::isfinite(scale.deviation[column])) {
      const std::size_t name = column < table.target ? column : column + 1;
      return Unreadable(table.path,
                        absl::StrCat("column '", table.names[name],
                                     "': its numbers are too large to be standardized"));
    }
    rows.values.push_back(value);
  }
  return rows;
}

// The file at `path`, according to the options. Adds its classes to `classes`.
absl::StatusOr<RawTable> ReadFor(const DataOptions& options, const std::string& path,
                                 std::vector<std::string>& classes) {
  const DataFacts& known = options.known;
  const bool needed = options.labels_needed || known.classes.empty();
  absl::StatusOr<RawTable> table = ReadRaw(path, options.target, needed);
  if (!table.ok()) return table;
  if (!known.normalization.empty()) {
    if (known.columns.empty()) {
      return Unreadable(path, "it is a table, and the model was trained on images");
    }
    const absl::Status status = PutInOrder(known.columns, &*table);
    if (!status.ok()) return status;
  }
  AddClasses(SortedClasses(table->classes), classes);
  if (const std::string unknown = UnknownClass(known.classes, classes);
      needed && !known.classes.empty() && !unknown.empty()) {
    return Unreadable(
        path, absl::StrCat("column '", options.target, "': ", unknown, "; leave such rows out"));
  }
  Renumber(classes, &*table);
  return table;
}

// Splits `all` into training and test rows.
std::pair<RawTable, RawTable> HeldOutRows(const RawTable& all, double share, std::uint64_t seed) {
  RawTable train{.path = all.path, .names = all.names, .target = all.target};
  RawTable test = train;
  const std::vector<bool> held_out =
      HoldOut(static_cast<std::int64_t>(all.labels.size()), share, seed);
  for (std::size_t row = 0; row < held_out.size(); ++row) {
    AppendRow(all, row, held_out[row] ? &test : &train);
  }
  return {std::move(train), std::move(test)};
}

}  // namespace

absl::StatusOr<TableSplits> ReadTable(const DataOptions& options) {
  const DataFacts& known = options.known;
  std::vector<std::string> classes = known.classes;
  const std::string& path = options.paths.front();
  absl::StatusOr<RawTable> train = ReadFor(options, path, classes);
  if (!train.ok()) return train.status();
  const std::size_t of_train = classes.size();
  if (of_train < 2) {
    return Unreadable(path, absl::StrCat("column '", options.target, "' has only one class, '",
                                         classes.front(), "', and two are needed"));
  }
  RawTable test;
  if (const std::string test_path = options.test_path(); !test_path.empty()) {
    absl::StatusOr<RawTable> read = ReadFor(options, test_path, classes);
    if (!read.ok()) return read.status();
    if (NumberColumns(*read) != NumberColumns(*train)) {
      return Unreadable(test_path, absl::StrCat("its columns are not those of ", path));
    }
    if (known.classes.empty() && classes.size() > of_train) {
      return Unreadable(test_path,
                        absl::StrCat("column '", options.target, "': there is no class '",
                                     classes[of_train], "' in ", path));
    }
    test = *std::move(read);
  } else if (train->has_target() && !options.undivided) {
    std::tie(*train, test) = HeldOutRows(*train, options.test_share, options.seed);
  }
  const Normalization scale =
      known.normalization.empty() ? MeasureScale(*train) : known.normalization;
  absl::StatusOr<TableRows> learned = Standardized(*train, scale);
  if (!learned.ok()) return learned.status();
  absl::StatusOr<TableRows> measured = TableRows();
  if (!test.labels.empty()) measured = Standardized(test, scale);
  if (!measured.ok()) return measured.status();
  return TableSplits{.facts = {.normalization = scale,
                               .columns = NumberColumns(*train),
                               .classes = std::move(classes)},
                     .train = *std::move(learned),
                     .test = *std::move(measured)};
}

}  // namespace muster::trainer
