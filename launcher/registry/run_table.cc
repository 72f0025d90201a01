#include "launcher/registry/run_table.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text_table.h"

namespace muster::launcher {
namespace {

// "GPU-8932f937" of "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6".
std::string ShortName(const RunDevice& device) {
  constexpr std::size_t kFirstBlock = 12;
  const bool is_uuid =
      absl::StartsWith(device.name, "GPU-") || absl::StartsWith(device.name, "MIG-");
  return is_uuid ? device.name.substr(0, kFirstBlock) : device.name;
}

std::vector<std::string> MakeRow(const RunInfo& run, absl::TimeZone zone) {
  const std::string devices = absl::StrJoin(
      run.devices, ",",
      [](std::string* out, const RunDevice& device) { absl::StrAppend(out, ShortName(device)); });
  const absl::Time since = absl::FromUnixSeconds(run.since.time_since_epoch().count());
  return {run.run_id,
          absl::StrCat(run.pid),
          run.node_rank < 0 ? "" : absl::StrCat(run.node_rank),
          devices,
          run.ranks,
          std::string(ToString(run.state)),
          absl::FormatTime("%Y-%m-%d %H:%M:%S", since, zone),
          run.log_dir,
          run.script};
}

}  // namespace

std::string RunTable(const std::vector<RunInfo>& runs, absl::TimeZone zone) {
  std::vector<std::vector<std::string>> rows = {
      {"RUN", "PID", "NODE", "DEVICES", "RANKS", "STATE", "SINCE", "LOGS", "SCRIPT"}};
  for (const RunInfo& run : runs) rows.push_back(MakeRow(run, zone));
  if (std::any_of(runs.begin(), runs.end(), [](const RunInfo& run) { return !run.host.empty(); })) {
    rows.front().insert(rows.front().begin(), "HOST");
    for (std::size_t i = 0; i < runs.size(); ++i) {
      rows[i + 1].insert(rows[i + 1].begin(), runs[i].host);
    }
  }
  return base::TextTable(std::move(rows));
}

}  // namespace muster::launcher
