#include "launcher/run/run_info.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "base/json.h"
#include "base/safe_text.h"
#include "base/text.h"
#include "launcher/cli/launch_config.h"

namespace muster::launcher {
namespace {

using base::Json;

constexpr char kTimeFormat[] = "%Y-%m-%dT%H:%M:%SZ";
constexpr Word<RunState> kRunStates[] = {{"waiting", RunState::kWaiting},
                                         {"running", RunState::kRunning},
                                         {"restarting", RunState::kRestarting},
                                         {"stopping", RunState::kStopping}};

std::string Dump(const Json& json) {
  return base::JsonText(json, /*indent=*/2) + "\n";
}

Json ToJson(const RunInfo& info) {
  Json devices = Json::array();
  for (const RunDevice& device : info.devices) {
    devices.push_back({{"name", device.name}, {"uuid", device.uuid}});
  }
  const absl::Time since = absl::FromChrono(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(info.since));
  Json json = {
      {"run_id", info.run_id},
      {"pid", info.pid},
      {"script", info.script},
      {"devices", std::move(devices)},
      {"ranks", info.ranks},
      {"state", std::string(ToString(info.state))},
      {"since", absl::FormatTime(kTimeFormat, since, absl::UTCTimeZone())},
      {"log_dir", info.log_dir},
      {"node_rank", info.node_rank < 0 ? Json(nullptr) : Json(info.node_rank)},
      {"nproc", info.nproc},
      {"launched", info.launched},
  };
  if (!info.host.empty()) json["host"] = info.host;
  return json;
}

// An int, where the number is one.
int ToInt(const Json& value) {
  // One that is above what is signed would come back as less.
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT_MAX);
  const std::int64_t number = fits ? value.get<std::int64_t>() : INT64_MIN;
  if (number < INT_MIN || number > INT_MAX) throw std::out_of_range("no int");
  return static_cast<int>(number);
}

// Throws json's exceptions for a member of the wrong type.
RunInfo FromJson(const Json& json) {
  RunInfo info;
  info.run_id = json.at("run_id").get<std::string>();
  info.pid = ToInt(json.at("pid"));
  info.script = json.value("script", info.script);
  for (const Json& device : json.value("devices", Json::array())) {
    info.devices.push_back(
        {.name = device.at("name").get<std::string>(), .uuid = device.value("uuid", "")});
  }
  info.ranks = json.value("ranks", info.ranks);
  const std::string state = json.value("state", "");
  for (const Word<RunState>& known : kRunStates) {
    if (state == known.word) info.state = known.value;
  }
  absl::Time since;
  std::string error;
  if (absl::ParseTime(kTimeFormat, json.value("since", ""), &since, &error)) {
    info.since = std::chrono::time_point_cast<std::chrono::seconds>(absl::ToChronoTime(since));
  }
  info.log_dir = json.value("log_dir", info.log_dir);
  const auto node_rank = json.find("node_rank");
  if (node_rank != json.end() && !node_rank->is_null()) info.node_rank = ToInt(*node_rank);
  info.nproc = json.contains("nproc") ? ToInt(json["nproc"]) : info.nproc;
  info.launched = json.value("launched", info.launched);
  return info;
}

bool Same(const RunDevice& a, const RunDevice& b) {
  return a.uuid.empty() || b.uuid.empty() ? a.name == b.name : a.uuid == b.uuid;
}

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

absl::string_view ToString(RunState state) {
  return WordFor(kRunStates, state);
}

std::string WriteRunInfo(const RunInfo& info) {
  return Dump(ToJson(info));
}

std::string WriteRunInfos(const std::vector<RunInfo>& runs) {
  Json array = Json::array();
  for (const RunInfo& info : runs) array.push_back(ToJson(info));
  return base::SafeJson(Dump(array));
}

std::optional<RunInfo> ReadRunInfo(absl::string_view text) {
  const Json json = base::ParseJson({text.data(), text.size()});
  if (!json.is_object()) return std::nullopt;
  try {
    return FromJson(json);
  } catch (const std::exception&) {  // Json's own is one, too
    return std::nullopt;
  }
}

std::optional<std::vector<RunInfo>> ReadRunInfos(absl::string_view text) {
  const Json json = base::ParseJson({text.data(), text.size()});
  if (!json.is_array()) return std::nullopt;
  std::vector<RunInfo> runs;
  try {
    for (const Json& run : json) runs.push_back(FromJson(run));
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return runs;
}

std::vector<std::string> DeviceConflicts(const std::vector<RunInfo>& runs,
                                         const std::vector<RunDevice>& devices) {
  std::vector<std::string> sentences;
  for (const RunDevice& device : devices) {
    for (const RunInfo& run : runs) {
      for (const RunDevice& theirs : run.devices) {
        if (!Same(device, theirs)) continue;
        sentences.push_back(absl::StrCat("device ", device.name, " is also used by run '",
                                         base::SafeLine(run.run_id), "' (pid ", run.pid, ", ",
                                         base::SafeLine(run.script), ")"));
        break;
      }
    }
  }
  return sentences;
}

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
