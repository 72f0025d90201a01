// The way from one host to another, as it was measured, as a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "launcher/doctor/connection.h"

namespace muster::launcher {

// What the host that connects has found out.
struct Way {
  DialOutcome outcome = DialOutcome::kFailed;
  std::string cause;  // why there is no connection
  // The connection was there, and then broke off, or said nothing more: why.
  std::string trouble;
  // A large transfer came to a halt, though small packets pass.
  bool stalls = false;
  double latency_us = 0;     // the median of round trips
  double clock_ahead_s = 0;  // how far the other clock is ahead of this one
  double bytes_per_s = 0;
  int mtu = 0;  // of the interface by which it goes
};

// And what the host it connects to has seen.
struct Arrival {
  // The largest packet that has come by UDP and may not be split on the way, in bytes with its
  // headers; 0: none has come.
  int largest_packet = 0;
  int mtu = 0;  // of the interface at which it comes
};

base::Json WayJson(const Way& way);
base::Json ArrivalJson(const Arrival& arrival);

// The other way, from a host that is not believed: texts are made safe to show, and what is missing
// or of another type is as if nothing had been found.
Way ReadWay(const base::Json& json);
Arrival ReadArrival(const base::Json& json);

}  // namespace muster::launcher
