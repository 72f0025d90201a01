// This machine's clock, as far as the machine itself can tell.
#pragma once

#include <chrono>
#include <string>

#include "launcher/doctor/report.h"

namespace muster::launcher {

struct ClockFacts {
  std::chrono::system_clock::time_point now;
  // Somebody, such as chrony or ntpd, keeps it right, says the kernel.
  bool is_synchronized = false;
  // What the kernel reads it from: "tsc", "kvm-clock", "hpet"; empty: unknown.
  std::string source;
};

ClockFacts ReadClock();

void Judge(const ClockFacts& clock, Report& report);

}  // namespace muster::launcher
