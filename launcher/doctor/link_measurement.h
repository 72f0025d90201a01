// The links between the hosts of a job, and their problems.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "launcher/doctor/network.h"
#include "launcher/doctor/report.h"

namespace muster::launcher {

// The measured link from one host to another, as a value.

// What the connecting host found.
struct LinkMeasurement {
  DialOutcome outcome = DialOutcome::kFailed;
  std::string cause;  // why there is no connection
  // Why a connection that was established broke off or fell silent.
  std::string trouble;
  // A large transfer stalled although small packets pass.
  bool stalls = false;
  double latency_us = 0;     // the median round trip
  double clock_ahead_s = 0;  // how far the other host's clock is ahead of this one's
  double bytes_per_s = 0;
  int mtu = 0;  // of the outgoing interface
};

// What the accepting host saw.
struct Arrival {
  // The largest unfragmented UDP packet that arrived, in bytes with its headers; 0: none arrived.
  int largest_packet = 0;
  int mtu = 0;  // of the incoming interface
};

base::Json LinkMeasurementJson(const LinkMeasurement& link);
base::Json ArrivalJson(const Arrival& arrival);

// Parse what an untrusted host sent: texts are made safe to show, and a missing or mistyped member
// counts as not found.
LinkMeasurement ReadLinkMeasurement(const base::Json& json);
Arrival ReadArrival(const base::Json& json);

struct MeasuredLink {
  LinkMeasurement link;
  Arrival arrival;
};

struct LinkMeasurements {
  // The names of all hosts, by number.
  std::vector<std::string> hosts;
  // From the connecting host to the accepting one.
  std::map<std::pair<int, int>, MeasuredLink> measured;
};

// Reports links that drop, reject or lose large packets, or are much slower than the others, and
// clocks that differ. Slow means slower than a multiple of the median of all links, as the
// network's intended speed is unknown.
void Judge(const LinkMeasurements& links, Report& report);

// How many seconds each host's clock is ahead of the median, computed from round trips; only for
// hosts with a measured link.
std::map<int, double> ClocksAhead(const LinkMeasurements& links);

// Reports versions that should be equal on all hosts of a job but differ. `versions` are those of
// each host's report, by host name.
void JudgeDifferences(const std::map<std::string, std::map<std::string, std::string>>& versions,
                      Report& report);

}  // namespace muster::launcher
