#include "launcher/doctor/ways.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/phrases.h"

namespace muster::launcher {
namespace {

constexpr double kSlowRatio = 4;
// Below this, a few times slower is the noise of a processor that does something else.
constexpr double kNoticedLatencyUs = 500;
constexpr double kClockWarning = 1;
constexpr double kClockError = 60;
constexpr int kFullPacket = 1280;

bool Connects(const MeasuredWay& one) {
  return one.way.outcome == DialOutcome::kConnected;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

std::vector<double> ValuesOf(const Ways& ways, double Way::*value) {
  std::vector<double> values;
  for (const auto& [pair, one] : ways.measured) {
    if (Connects(one) && one.way.*value > 0) values.push_back(one.way.*value);
  }
  return values;
}

const std::string& NameOf(const Ways& ways, int host) {
  return ways.hosts[static_cast<std::size_t>(host)];
}

void AddWay(const Ways& ways, const std::pair<int, int>& pair, Severity severity,
            const std::string& subject, const std::string& what, const char* why,
            const std::string& remedy, Report& report) {
  report.findings.push_back({.severity = severity,
                             .subject = subject,
                             .what = absl::StrCat(NameOf(ways, pair.first), " -> ",
                                                  NameOf(ways, pair.second), ": ", what),
                             .why = why,
                             .remedy = remedy,
                             .hosts = {}});
}

// What is known of the other way and of packets that need no answer.
std::string WhatElse(const Ways& ways, const std::pair<int, int>& pair, const MeasuredWay& one) {
  std::vector<std::string> more;
  if (one.arrival.largest_packet > 0) more.push_back("packets of UDP do arrive");
  const auto back = ways.measured.find({pair.second, pair.first});
  if (back != ways.measured.end() && Connects(back->second)) {
    more.push_back("the other way it works");
  } else if (back != ways.measured.end() && back->second.arrival.largest_packet > 0) {
    more.push_back("the other way packets of UDP arrive");
  }
  return more.empty() ? "" : absl::StrCat(" (", absl::StrJoin(more, ", "), ")");
}

void JudgeConnection(const Ways& ways, const std::pair<int, int>& pair, const MeasuredWay& one,
                     Report& report) {
  const std::string more = WhatElse(ways, pair, one);
  const std::string& to = NameOf(ways, pair.second);
  const char* const why =
      "Ranks connect to one another at ports that the kernel chooses. Where that is impossible in "
      "either direction the job waits for its first collective until it times out.";
  switch (one.way.outcome) {
    case DialOutcome::kConnected:
      return;
    case DialOutcome::kRefused:
      return AddWay(
          ways, pair, Severity::kError, "firewall",
          absl::StrCat("a connection is refused", more, "."), why,
          absl::StrCat("Something answers for ", to,
                       " that did not ask it: a firewall that rejects. Let the hosts of a "
                       "job reach one another at all ports (`nft list ruleset`, "
                       "`iptables -S`, the cloud's security groups)."),
          report);
    case DialOutcome::kSilent:
      return AddWay(ways, pair, Severity::kError, "firewall",
                    absl::StrCat("nothing comes back when a connection is asked for", more, "."),
                    why,
                    "A firewall drops, on either host or between them, or there is no way. Let the "
                    "hosts of a job reach one another at all ports (`nft list ruleset`, `iptables "
                    "-S`, the cloud's security groups).",
                    report);
    case DialOutcome::kNoRoute:
    case DialOutcome::kFailed:
      return AddWay(ways, pair, Severity::kError, "network",
                    absl::StrCat("no connection: ", one.way.cause, more, "."), why,
                    "See `ip route get` with the other's address on the first host: a route, a "
                    "gateway or an interface is missing, or a firewall says so.",
                    report);
  }
}

void JudgePackets(const Ways& ways, const std::pair<int, int>& pair, const MeasuredWay& one,
                  Report& report) {
  const char* const why =
      "Connections come about, as their first packets are small, and hang as soon as much is sent: "
      "the first large collective, or a checkpoint, never ends.";
  const int ends = std::min(one.way.mtu, one.arrival.mtu);
  const int passes = one.arrival.largest_packet;
  if (passes > 0 && ends > 0 && passes < ends) {
    return AddWay(ways, pair, Severity::kError, "MTU",
                  absl::StrFormat("the interfaces send packets of %d bytes, and none of more than "
                                  "%d arrives.",
                                  ends, passes),
                  why,
                  absl::StrFormat("Set the switches and tunnels between them to %d, or the "
                                  "interfaces of all hosts to %d (`ip link set dev eth0 mtu %d`).",
                                  ends, passes, passes),
                  report);
  }
  if (one.way.stalls) {
    return AddWay(ways, pair, Severity::kError, "MTU",
                  "small packets pass, and a large transfer comes to a halt.", why,
                  "Compare the MTU of all interfaces, switches and tunnels on the way (`ip link`, "
                  "`tracepath`), and let ICMP pass, by which a router says that a packet is too "
                  "large.",
                  report);
  }
  if (one.way.mtu != one.arrival.mtu && one.way.mtu > 0 && one.arrival.mtu > 0 &&
      pair.first < pair.second) {
    AddWay(ways, pair, Severity::kWarning, "MTU",
           absl::StrFormat("the interfaces' MTUs differ: %d and %d.", one.way.mtu, one.arrival.mtu),
           "TCP agrees on the smaller one, but RoCE does not, and what lies between may drop the "
           "larger packets.",
           "Give the interfaces of all hosts the same MTU.", report);
  }
}

void JudgeSpeed(const Ways& ways, const std::pair<int, int>& pair, const MeasuredWay& one,
                double latency, double bandwidth, Report& report) {
  const Way& way = one.way;
  if (way.latency_us > kSlowRatio * latency && way.latency_us > kNoticedLatencyUs) {
    AddWay(ways, pair, Severity::kWarning, "latency",
           absl::StrFormat("a round trip takes %.2f ms; the median of all is %.2f ms.",
                           way.latency_us / 1000, latency / 1000),
           "Every rank waits for the slowest pair in each small collective.",
           "See whether this host is in another rack or zone, is busy, or has a bad cable.",
           report);
  }
  if (way.bytes_per_s > 0 && way.bytes_per_s * kSlowRatio < bandwidth) {
    AddWay(ways, pair, Severity::kWarning, "bandwidth",
           absl::StrFormat("%.2f Gbit/s; the median of all is %.2f.", way.bytes_per_s * 8e-9,
                           bandwidth * 8e-9),
           "A ring is as fast as its slowest way: all ranks wait for it.",
           "See `ethtool` for the interface's speed and duplex, its errors (`ip -s link`), and the "
           "switch's.",
           report);
  }
  if (!way.trouble.empty() && !way.stalls) {
    AddWay(ways, pair, Severity::kError, "network",
           absl::StrCat("the connection broke off while it was measured: ", way.trouble, "."),
           "A job's connections would, too.",
           "See what on the way ends connections: a firewall that looks into them, or a proxy.",
           report);
  }
}

}  // namespace

std::map<int, double> ClocksAhead(const Ways& ways) {
  std::map<int, double> ahead;
  // Every host whose clock is known against the first's, directly or by others.
  for (const auto& [pair, one] : ways.measured) {
    if (ahead.empty() && Connects(one) && one.way.latency_us > 0) ahead[pair.first] = 0;
  }
  for (bool grows = true; std::exchange(grows, false);) {
    for (const auto& [pair, one] : ways.measured) {
      if (!Connects(one) || one.way.latency_us <= 0) continue;
      const auto [from, to] = pair;
      if (ahead.count(from) > 0 && ahead.count(to) == 0) {
        ahead[to] = ahead[from] + one.way.clock_ahead_s;
        grows = true;
      } else if (ahead.count(to) > 0 && ahead.count(from) == 0) {
        ahead[from] = ahead[to] - one.way.clock_ahead_s;
        grows = true;
      }
    }
  }
  std::vector<double> values;
  for (const auto& [host, seconds] : ahead) values.push_back(seconds);
  const double median = Median(values);
  for (auto& [host, seconds] : ahead) seconds -= median;
  return ahead;
}

void Judge(const Ways& ways, Report& report) {
  const std::size_t before = report.findings.size();
  const double latency = Median(ValuesOf(ways, &Way::latency_us));
  const double bandwidth = Median(ValuesOf(ways, &Way::bytes_per_s));
  bool packets_pass = false;
  for (const auto& [pair, one] : ways.measured) {
    JudgeConnection(ways, pair, one, report);
    if (!Connects(one)) continue;
    packets_pass = packets_pass || one.arrival.largest_packet >= kFullPacket;
    JudgePackets(ways, pair, one, report);
    JudgeSpeed(ways, pair, one, latency, bandwidth, report);
  }
  const bool is_fine = report.findings.size() == before;
  const std::map<int, double> clocks = ClocksAhead(ways);
  double most = 0;
  for (const auto& [host, seconds] : clocks) {
    most = std::max(most, std::abs(seconds));
    if (std::abs(seconds) < kClockWarning) continue;
    report.findings.push_back(
        {.severity = std::abs(seconds) < kClockError ? Severity::kWarning : Severity::kError,
         .subject = "clocks",
         .what = absl::StrFormat("the clock of %s is %.3g s %s the others'.", NameOf(ways, host),
                                 std::abs(seconds), seconds > 0 ? "ahead of" : "behind"),
         .why = "Logs of several hosts tell of things in the wrong order, and the certificates by "
                "which nodes prove who they are count as not yet, or no longer, good.",
         .remedy = "Let chrony or systemd-timesyncd keep the clock of every host.",
         .hosts = {}});
  }
  if (ways.measured.empty()) return;
  if (is_fine) {
    report.fine.push_back(
        {"ways", absl::StrCat(base::Count(ways.measured.size(), "way"),
                              " between hosts measured: connections, packet sizes, latency and "
                              "bandwidth")});
  }
  if (!clocks.empty() && most < kClockWarning) {
    report.fine.push_back({"clocks", absl::StrFormat("at most %.2g ms apart", most * 1000)});
  }
  if (!packets_pass && bandwidth > 0) {
    report.fine.push_back(
        {"MTU", "no packet of UDP arrives anywhere, so by large transfers alone"});
  }
}

void JudgeDifferences(const std::map<std::string, std::map<std::string, std::string>>& versions,
                      Report& report) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> by_name;
  for (const auto& [host, all] : versions) {
    for (const auto& [name, version] : all) by_name[name][version].push_back(host);
  }
  for (auto& [name, by_version] : by_name) {
    std::vector<std::string> without;
    for (const auto& [host, all] : versions) {
      if (all.count(name) == 0) without.push_back(host);
    }
    if (!without.empty()) by_version["none"] = without;
    if (by_version.size() < 2) continue;
    std::vector<std::string> parts;
    for (const auto& [version, hosts] : by_version) {
      parts.push_back(absl::StrCat(version, " on ", base::ShortList(hosts)));
    }
    const bool is_grave = name == "NCCL" || name == "PyTorch" || name == "muster";
    const bool is_light = name == "kernel" || name == "system" || name == "glibc";
    report.findings.push_back(
        {.severity = is_grave   ? Severity::kError
                     : is_light ? Severity::kNote
                                : Severity::kWarning,
         .subject = "versions",
         .what = absl::StrCat(name, " differs: ", absl::StrJoin(parts, "; "), "."),
         .why = is_grave
                    ? "Ranks with different versions do not understand one another, or compute "
                      "different things: \"NCCL version mismatch\", or a hang."
                    : "A fault of one version shows on some hosts and not on others, and ranks "
                      "differ in speed.",
         .remedy = "Install the same on all hosts, or run the job in one container image.",
         .hosts = {}});
  }
}

}  // namespace muster::launcher
