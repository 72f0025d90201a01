#include "launcher/doctor/ways_view.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text_table.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kMaxColumns = 8;
// A name in a table of eight columns.
constexpr std::size_t kMaxName = 7;

std::string ShortName(const std::string& name) {
  return name.size() <= kMaxName ? name : absl::StrCat(name.substr(0, kMaxName - 1), "~");
}

using Print = std::function<std::string(const Way&)>;

std::string Matrix(const Ways& ways, const std::string& corner, const Print& print) {
  std::vector<std::vector<std::string>> rows = {{corner}};
  for (const std::string& host : ways.hosts) rows.front().push_back(ShortName(host));
  for (int from = 0; from < static_cast<int>(ways.hosts.size()); ++from) {
    std::vector<std::string> row = {ShortName(ways.hosts[static_cast<std::size_t>(from)])};
    for (int to = 0; to < static_cast<int>(ways.hosts.size()); ++to) {
      const auto found = ways.measured.find({from, to});
      if (found == ways.measured.end()) {
        row.emplace_back(from == to ? "." : "");
      } else {
        const bool connects = found->second.way.outcome == DialOutcome::kConnected;
        row.push_back(connects ? print(found->second.way) : "x");
      }
    }
    rows.push_back(std::move(row));
  }
  return base::TextTable(std::move(rows));
}

std::string Spread(const Ways& ways, const Print& print, double Way::*value) {
  std::vector<const Way*> all;
  for (const auto& [pair, one] : ways.measured) {
    if (one.way.*value > 0) all.push_back(&one.way);
  }
  if (all.empty()) return "nothing";
  std::sort(all.begin(), all.end(),
            [value](const Way* a, const Way* b) { return a->*value < b->*value; });
  return absl::StrCat("least ", print(*all.front()), ", median ", print(*all[all.size() / 2]),
                      ", greatest ", print(*all.back()));
}

}  // namespace

std::string WaysText(const Ways& ways) {
  if (ways.measured.empty()) return "";
  const Print latency = [](const Way& way) {
    return way.latency_us > 0 ? absl::StrFormat("%.3g", way.latency_us / 1000) : "";
  };
  const Print bandwidth = [](const Way& way) {
    return way.bytes_per_s > 0 ? absl::StrFormat("%.3g", way.bytes_per_s * 8e-9) : "";
  };
  if (ways.hosts.size() > kMaxColumns) {
    return absl::StrCat("\nround trips, ms:   ", Spread(ways, latency, &Way::latency_us),
                        "\nbandwidth, Gbit/s: ", Spread(ways, bandwidth, &Way::bytes_per_s), "\n");
  }
  return absl::StrCat("\nround trips in ms, from the row to the column:\n",
                      Matrix(ways, " ", latency), "\nbandwidth in Gbit/s, over one connection:\n",
                      Matrix(ways, " ", bandwidth));
}

base::Json WaysJson(const Ways& ways) {
  base::Json json = base::Json::array();
  for (const auto& [pair, one] : ways.measured) {
    json.push_back({{"from", ways.hosts[static_cast<std::size_t>(pair.first)]},
                    {"to", ways.hosts[static_cast<std::size_t>(pair.second)]},
                    {"connects", one.way.outcome == DialOutcome::kConnected},
                    {"latency_us", one.way.latency_us},
                    {"gbit_per_s", one.way.bytes_per_s * 8e-9},
                    {"clock_ahead_s", one.way.clock_ahead_s},
                    {"largest_packet", one.arrival.largest_packet}});
  }
  return json;
}

}  // namespace muster::launcher
