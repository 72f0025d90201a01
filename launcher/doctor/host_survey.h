// The state machine of `muster doctor --hosts`, without I/O or clock: lines from hosts go in,
// commands for them come out.
//
// First every host reports its own findings, or is given up. Then the reachable hosts measure the
// links between them in stages. A stage ends when both ends of each of its pairings have reported
// or were given up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "launcher/doctor/link_measurement.h"
#include "launcher/doctor/report.h"

namespace muster::launcher {

// Which hosts measure each other, and when: a host takes part in one measurement at a time.

// One measurement: host `from` connects to host `to`. Hosts are numbered by their place in the
// list.
struct Pairing {
  int from = 0;
  int to = 0;

  bool operator==(const Pairing&) const = default;
};

// Simultaneous pairings; no host is in two of them.
using Stage = std::vector<Pairing>;

// A round-robin tournament, each pair in both directions: n-1 rounds for n hosts (n if n is odd),
// with two stages each. At most `max_rounds` rounds are scheduled; each host then meets that many
// others.
std::vector<Stage> PairingSchedule(const std::vector<int>& hosts, std::size_t max_rounds);

class HostSurvey {
 public:
  // With more hosts than this, each meets only this many others.
  static constexpr std::size_t kMaxRounds = 15;

  // `hosts` are their names. `make_key` returns a new 16-character key for one measurement.
  HostSurvey(std::vector<std::string> hosts, std::function<std::string()> make_key);

  // Handles a line from a host, which is not trusted. Returns a line of JSON to send to all hosts,
  // or nothing; so do the next two.
  std::optional<std::string> OnLine(int host, std::string_view line);
  // No more lines will come from a host: it was not reachable, is lost or has exited. Only the
  // first reason for a host counts.
  std::optional<std::string> OnGone(int host, const std::string& reason);
  // Gives up the hosts that have not answered.
  std::optional<std::string> OnDeadline();

  // Whether all answers are in.
  bool is_over() const { return awaited_.empty(); }
  // The number of stages, and the current one; 0 while hosts report their own findings.
  std::size_t stages() const { return stages_.size(); }
  std::size_t stage() const { return stage_; }

  // The whole result: findings of hosts, with identical ones merged, of links, and of differences.
  Report Result() const;
  const LinkMeasurements& links() const { return links_; }

 private:
  struct HostState {
    std::optional<Report> report;
    std::string address;
    std::uint16_t port = 0;
    std::string gone;  // why it sends nothing more
  };

  void TakeReport(HostState& state, const base::Json& json);
  void TakeMeasurement(int host, const base::Json& json);
  std::optional<std::string> MaybeNext();
  std::string Announce();
  void AddHostsFindings(Report& result) const;

  const std::vector<std::string> hosts_;
  const std::function<std::string()> make_key_;
  std::vector<HostState> states_;
  // Hosts that must answer before the next step.
  std::set<int> awaited_;
  bool measures_ = false;
  std::vector<Stage> stages_;
  std::size_t stage_ = 0;  // the current one, counted from 1
  LinkMeasurements links_;
};

// A doctor's report as JSON: for programs, and for the transfer from a host.

// {"errors": 1, "findings": [{"severity", "subject", "what", "why", "do", "hosts"}],
//  "fine": [{"subject", "found"}], "versions": {}}
base::Json ReportJson(const Report& report);

// Parses a report from an untrusted host: texts are made safe to show and cut to 2,000 bytes, and
// at most 200 findings, passed checks and versions each are read. nullopt if it is not a report.
std::optional<Report> ReadReport(const base::Json& json);

}  // namespace muster::launcher
