#include "launcher/registry/run_table.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::launcher {
namespace {

using Row = std::array<std::string, 9>;

// "GPU-8932f937" of "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6".
std::string ShortName(const RunDevice& device) {
  constexpr std::size_t kFirstBlock = 12;
  const bool is_uuid =
      absl::StartsWith(device.name, "GPU-") || absl::StartsWith(device.name, "MIG-");
  return is_uuid ? device.name.substr(0, kFirstBlock) : device.name;
}

std::string Shown(std::string text) {
  if (text.empty()) return "-";
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return absl::ascii_iscntrl(c); }, '?');
  return text;
}

// Characters, not bytes: what continues a character in UTF-8 takes no column.
std::size_t Width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

Row MakeRow(const RunInfo& run, absl::TimeZone zone) {
  const std::string devices = absl::StrJoin(
      run.devices, ",",
      [](std::string* out, const RunDevice& device) { absl::StrAppend(out, ShortName(device)); });
  const absl::Time since = absl::FromUnixSeconds(run.since.time_since_epoch().count());
  Row row = {run.run_id,
             absl::StrCat(run.pid),
             run.node_rank < 0 ? "" : absl::StrCat(run.node_rank),
             devices,
             run.ranks,
             std::string(ToString(run.state)),
             absl::FormatTime("%Y-%m-%d %H:%M:%S", since, zone),
             run.log_dir,
             run.script};
  std::transform(row.begin(), row.end(), row.begin(), Shown);
  return row;
}

}  // namespace

std::string RunTable(const std::vector<RunInfo>& runs, absl::TimeZone zone) {
  std::vector<Row> rows = {
      {"RUN", "PID", "NODE", "DEVICES", "RANKS", "STATE", "SINCE", "LOGS", "SCRIPT"}};
  for (const RunInfo& run : runs) rows.push_back(MakeRow(run, zone));

  std::array<std::size_t, std::tuple_size_v<Row>> widths = {};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string table;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      absl::StrAppend(&table, row[i],
                      last ? "\n" : std::string(widths[i] + 2 - Width(row[i]), ' '));
    }
  }
  return table;
}

}  // namespace muster::launcher
