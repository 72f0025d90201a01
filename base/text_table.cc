#include "base/text_table.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace muster::base {
namespace {

void MakePresentable(std::string& cell) {
  if (cell.empty()) cell = "-";
  std::replace_if(
      cell.begin(), cell.end(), [](unsigned char c) { return absl::ascii_iscntrl(c); }, '?');
}

// Characters, not bytes: what continues a character in UTF-8 takes no column.
std::size_t Width(const std::string& cell) {
  return static_cast<std::size_t>(
      std::count_if(cell.begin(), cell.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string TextTable(std::vector<std::vector<std::string>> rows) {
  if (rows.empty()) return "";
  std::vector<std::size_t> widths(rows.front().size());
  for (std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      MakePresentable(row[i]);
      widths[i] = std::max(widths[i], Width(row[i]));
    }
  }
  std::string table;
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      absl::StrAppend(&table, row[i],
                      last ? "\n" : std::string(widths[i] + 2 - Width(row[i]), ' '));
    }
  }
  return table;
}

}  // namespace muster::base
