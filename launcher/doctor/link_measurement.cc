#include "launcher/doctor/link_measurement.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "base/text.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kMaxCause = 200;

double NumberOf(const base::Json& json, const char* name) {
  if (!json.is_object()) return 0;
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number()) return 0;
  const double number = found->get<double>();
  return std::isfinite(number) && std::abs(number) < 1e15 ? number : 0;
}

int SmallNumberOf(const base::Json& json, const char* name) {
  const double number = NumberOf(json, name);
  return number > 0 && number < 1e6 ? static_cast<int>(number) : 0;
}

std::string CauseOf(const base::Json& json, const char* name) {
  if (!json.is_object()) return "";
  const auto found = json.find(name);
  if (found == json.end() || !found->is_string()) return "";
  return rendezvous::OneLine(found->get_ref<const std::string&>(), kMaxCause);
}

}  // namespace

base::Json LinkMeasurementJson(const LinkMeasurement& link) {
  return {{"outcome", static_cast<int>(link.outcome)},
          {"cause", link.cause},
          {"trouble", link.trouble},
          {"stalls", link.stalls ? 1 : 0},
          {"latency_us", link.latency_us},
          {"clock_ahead_s", link.clock_ahead_s},
          {"bytes_per_s", link.bytes_per_s},
          {"mtu", link.mtu}};
}

base::Json ArrivalJson(const Arrival& arrival) {
  return {{"largest_packet", arrival.largest_packet}, {"mtu", arrival.mtu}};
}

LinkMeasurement ReadLinkMeasurement(const base::Json& json) {
  LinkMeasurement link;
  const double outcome = json.is_object() && json.contains("outcome")
                             ? NumberOf(json, "outcome")
                             : static_cast<double>(DialOutcome::kFailed);
  link.outcome = outcome >= 0 && outcome <= static_cast<double>(DialOutcome::kFailed)
                     ? static_cast<DialOutcome>(outcome)
                     : DialOutcome::kFailed;
  link.cause = CauseOf(json, "cause");
  link.trouble = CauseOf(json, "trouble");
  link.stalls = NumberOf(json, "stalls") == 1;
  link.latency_us = std::max(0.0, NumberOf(json, "latency_us"));
  link.clock_ahead_s = NumberOf(json, "clock_ahead_s");
  link.bytes_per_s = std::max(0.0, NumberOf(json, "bytes_per_s"));
  link.mtu = SmallNumberOf(json, "mtu");
  return link;
}

Arrival ReadArrival(const base::Json& json) {
  return {.largest_packet = SmallNumberOf(json, "largest_packet"),
          .mtu = SmallNumberOf(json, "mtu")};
}

namespace {

constexpr double kSlowRatio = 4;
// Below this, a few times slower may just be a busy processor.
constexpr double kNoticedLatencyUs = 500;
constexpr double kClockWarning = 1;
constexpr double kClockError = 60;
constexpr int kFullPacket = 1280;

bool Connects(const MeasuredLink& one) {
  return one.link.outcome == DialOutcome::kConnected;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

std::vector<double> ValuesOf(const LinkMeasurements& links, double LinkMeasurement::*value) {
  std::vector<double> values;
  for (const auto& [pair, one] : links.measured) {
    if (Connects(one) && one.link.*value > 0) values.push_back(one.link.*value);
  }
  return values;
}

const std::string& NameOf(const LinkMeasurements& links, int host) {
  return links.hosts[static_cast<std::size_t>(host)];
}

void AddLinkFinding(const LinkMeasurements& links, const std::pair<int, int>& pair,
                    Severity severity, const std::string& subject, const std::string& what,
                    const char* why, const std::string& remedy, Report& report) {
  report.Add(
      severity, subject,
      absl::StrCat(NameOf(links, pair.first), " -> ", NameOf(links, pair.second), ": ", what), why,
      remedy);
}

// What the opposite direction and the UDP packets showed.
std::string WhatElse(const LinkMeasurements& links, const std::pair<int, int>& pair,
                     const MeasuredLink& one) {
  std::vector<std::string> more;
  if (one.arrival.largest_packet > 0) more.push_back("UDP packets do arrive");
  const auto back = links.measured.find({pair.second, pair.first});
  if (back != links.measured.end() && Connects(back->second)) {
    more.push_back("the other direction works");
  } else if (back != links.measured.end() && back->second.arrival.largest_packet > 0) {
    more.push_back("UDP packets arrive in the other direction");
  }
  return more.empty() ? "" : absl::StrCat(" (", absl::StrJoin(more, ", "), ")");
}

void JudgeConnection(const LinkMeasurements& links, const std::pair<int, int>& pair,
                     const MeasuredLink& one, Report& report) {
  const std::string more = WhatElse(links, pair, one);
  const std::string& to = NameOf(links, pair.second);
  const char* const why =
      "Ranks connect to one another at ports that the kernel chooses. Where that is impossible in "
      "either direction the job waits for its first collective until it times out.";
  switch (one.link.outcome) {
    case DialOutcome::kConnected:
      return;
    case DialOutcome::kRefused:
      return AddLinkFinding(links, pair, Severity::kError, "firewall",
                            absl::StrCat("a connection is refused", more, "."), why,
                            absl::StrCat("Something answers in place of ", to,
                                         ": a firewall that rejects. Let the hosts of a job reach "
                                         "each other on all ports (`nft list ruleset`, "
                                         "`iptables -S`, the cloud's security groups)."),
                            report);
    case DialOutcome::kSilent:
      return AddLinkFinding(
          links, pair, Severity::kError, "firewall",
          absl::StrCat("connection attempts get no reply", more, "."), why,
          "A firewall drops the packets, on either host or between them, or there is no route. Let "
          "the hosts of a job reach each other on all ports (`nft list ruleset`, `iptables "
          "-S`, the cloud's security groups).",
          report);
    case DialOutcome::kNoRoute:
    case DialOutcome::kFailed:
      return AddLinkFinding(links, pair, Severity::kError, "network",
                            absl::StrCat("no connection: ", one.link.cause, more, "."), why,
                            "Run `ip route get` with the other's address on the first host: a "
                            "route, a gateway or an interface is missing, or a firewall rejects.",
                            report);
  }
}

void JudgePackets(const LinkMeasurements& links, const std::pair<int, int>& pair,
                  const MeasuredLink& one, Report& report) {
  const char* const why =
      "Connections are established, as their first packets are small, and hang once much data is "
      "sent: the first large collective, or a checkpoint, never finishes.";
  const int ends = std::min(one.link.mtu, one.arrival.mtu);
  const int passes = one.arrival.largest_packet;
  if (passes > 0 && ends > 0 && passes < ends) {
    return AddLinkFinding(
        links, pair, Severity::kError, "MTU",
        absl::StrFormat("the interfaces send packets of %d bytes, and none of more than "
                        "%d arrives.",
                        ends, passes),
        why,
        absl::StrFormat("Set the switches and tunnels between them to %d, or the "
                        "interfaces of all hosts to %d (`ip link set dev eth0 mtu %d`).",
                        ends, passes, passes),
        report);
  }
  if (one.link.stalls) {
    return AddLinkFinding(
        links, pair, Severity::kError, "MTU",
        "small packets get through, but a large transfer stalls.", why,
        "Compare the MTU of all interfaces, switches and tunnels on the path (`ip link`, "
        "`tracepath`), and allow ICMP, which routers use to report packets that are too large.",
        report);
  }
  if (one.link.mtu != one.arrival.mtu && one.link.mtu > 0 && one.arrival.mtu > 0 &&
      pair.first < pair.second) {
    AddLinkFinding(
        links, pair, Severity::kWarning, "MTU",
        absl::StrFormat("the interfaces' MTUs differ: %d and %d.", one.link.mtu, one.arrival.mtu),
        "TCP agrees on the smaller one, but RoCE does not, and devices in between may drop larger "
        "packets.",
        "Give the interfaces of all hosts the same MTU.", report);
  }
}

void JudgeSpeed(const LinkMeasurements& links, const std::pair<int, int>& pair,
                const MeasuredLink& one, double latency, double bandwidth, Report& report) {
  const LinkMeasurement& link = one.link;
  if (link.latency_us > kSlowRatio * latency && link.latency_us > kNoticedLatencyUs) {
    AddLinkFinding(
        links, pair, Severity::kWarning, "latency",
        absl::StrFormat("a round trip takes %.2f ms; the median of all is %.2f ms.",
                        link.latency_us / 1000, latency / 1000),
        "Every rank waits for the slowest pair in each small collective.",
        "Check whether this host is in another rack or zone, is busy, or has a bad cable.", report);
  }
  if (link.bytes_per_s > 0 && link.bytes_per_s * kSlowRatio < bandwidth) {
    AddLinkFinding(
        links, pair, Severity::kWarning, "bandwidth",
        absl::StrFormat("%.2f Gbit/s; the median of all is %.2f.", link.bytes_per_s * 8e-9,
                        bandwidth * 8e-9),
        "A ring is as fast as its slowest link: all ranks wait for it.",
        "See `ethtool` for the interface's speed and duplex, its errors (`ip -s link`), and the "
        "switch's.",
        report);
  }
  if (!link.trouble.empty() && !link.stalls) {
    AddLinkFinding(links, pair, Severity::kError, "network",
                   absl::StrCat("the connection broke during the measurement: ", link.trouble, "."),
                   "A job's connections would, too.",
                   "Find out what on the path closes connections: a stateful firewall or a proxy.",
                   report);
  }
}

}  // namespace

std::map<int, double> ClocksAhead(const LinkMeasurements& links) {
  std::map<int, double> ahead;
  // Derives every clock relative to the first host's, directly or through other hosts.
  for (const auto& [pair, one] : links.measured) {
    if (ahead.empty() && Connects(one) && one.link.latency_us > 0) ahead[pair.first] = 0;
  }
  for (bool grows = true; std::exchange(grows, false);) {
    for (const auto& [pair, one] : links.measured) {
      if (!Connects(one) || one.link.latency_us <= 0) continue;
      const auto [from, to] = pair;
      if (ahead.count(from) > 0 && ahead.count(to) == 0) {
        ahead[to] = ahead[from] + one.link.clock_ahead_s;
        grows = true;
      } else if (ahead.count(to) > 0 && ahead.count(from) == 0) {
        ahead[from] = ahead[to] - one.link.clock_ahead_s;
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

void Judge(const LinkMeasurements& links, Report& report) {
  const std::size_t before = report.findings.size();
  const double latency = Median(ValuesOf(links, &LinkMeasurement::latency_us));
  const double bandwidth = Median(ValuesOf(links, &LinkMeasurement::bytes_per_s));
  bool packets_pass = false;
  for (const auto& [pair, one] : links.measured) {
    JudgeConnection(links, pair, one, report);
    if (!Connects(one)) continue;
    packets_pass = packets_pass || one.arrival.largest_packet >= kFullPacket;
    JudgePackets(links, pair, one, report);
    JudgeSpeed(links, pair, one, latency, bandwidth, report);
  }
  const bool is_fine = report.findings.size() == before;
  const std::map<int, double> clocks = ClocksAhead(links);
  double most = 0;
  for (const auto& [host, seconds] : clocks) {
    most = std::max(most, std::abs(seconds));
    if (std::abs(seconds) < kClockWarning) continue;
    report.Add(std::abs(seconds) < kClockError ? Severity::kWarning : Severity::kError, "clocks",
               absl::StrFormat("the clock of %s is %.3g s %s the others'.", NameOf(links, host),
                               std::abs(seconds), seconds > 0 ? "ahead of" : "behind"),
               "Logs of several hosts show events in the wrong order, and the certificates that "
               "authenticate nodes are rejected as not yet valid or expired.",
               "Run chrony or systemd-timesyncd on every host.");
  }
  if (links.measured.empty()) return;
  if (is_fine) {
    report.fine.push_back(
        {"links", absl::StrCat(base::Count(links.measured.size(), "link"),
                               " between hosts measured: connections, packet sizes, latency and "
                               "bandwidth")});
  }
  if (!clocks.empty() && most < kClockWarning) {
    report.fine.push_back({"clocks", absl::StrFormat("at most %.2g ms apart", most * 1000)});
  }
  if (!packets_pass && bandwidth > 0) {
    report.fine.push_back({"MTU", "no UDP packet arrives anywhere, so by large transfers alone"});
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
    report.Add(is_grave   ? Severity::kError
               : is_light ? Severity::kNote
                          : Severity::kWarning,
               "versions", absl::StrCat(name, " differs: ", absl::StrJoin(parts, "; "), "."),
               is_grave ? "Ranks with different versions cannot talk to each other, or compute "
                          "different results: \"NCCL version mismatch\", or a hang."
                        : "A fault of one version shows on some hosts and not on others, and ranks "
                          "differ in speed.",
               "Install the same version on all hosts, or run the job in one container image.");
  }
}

}  // namespace muster::launcher
