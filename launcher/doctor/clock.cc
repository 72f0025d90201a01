#include "launcher/doctor/clock.h"

#include <sys/timex.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "worker/process/cgroup_paths.h"

namespace muster::launcher {
namespace {

// No machine that runs this program has seen an earlier day: 2026-01-01.
constexpr std::chrono::seconds kFirstDay(1767225600);

}  // namespace

ClockFacts ReadClock() {
  ClockFacts clock{.now = std::chrono::system_clock::now()};
  timex state = {};
  clock.is_synchronized = ::adjtimex(&state) != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
  clock.source = std::string(absl::StripSuffix(
      worker::ReadSmallFile("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
      "\n"));
  return clock;
}

void Judge(const ClockFacts& clock, Report& report) {
  const std::string now =
      absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromChrono(clock.now), absl::UTCTimeZone());
  if (clock.now.time_since_epoch() < kFirstDay) {
    report.findings.push_back(
        {.severity = Severity::kError,
         .subject = "clock",
         .what = absl::StrCat("the clock says ", now, " UTC."),
         .why = "The certificates by which nodes prove who they are have times between which they "
                "are good: no node can be met.",
         .remedy = "Set the clock, and let chrony or systemd-timesyncd keep it.",
         .hosts = {}});
  } else {
    report.fine.push_back({"clock", absl::StrCat("it is ", now, " UTC")});
  }
  if (!clock.is_synchronized) {
    report.findings.push_back(
        {.severity = Severity::kNote,
         .subject = "clock",
         .what = "the kernel says that nobody keeps the clock right.",
         .why =
             "It drifts by seconds a day. Logs of several hosts then tell of things in the wrong "
             "order, and certificates are refused once it is minutes off.",
         .remedy = "Start chrony or systemd-timesyncd; in a container or a virtual machine, the "
                   "host may do it without the kernel's knowledge.",
         .hosts = {}});
  }
  if (clock.source == "hpet" || clock.source == "acpi_pm" || clock.source == "jiffies" ||
      clock.source == "refined-jiffies") {
    report.findings.push_back(
        {.severity = Severity::kWarning,
         .subject = "clock",
         .what = absl::StrCat("the kernel reads the time from ", clock.source, "."),
         .why =
             "To ask for the time then takes a microsecond and a system call, and CUDA, NCCL and "
             "profilers ask all the time.",
         .remedy = "See `dmesg | grep -i clocksource` for why the processor's counter (tsc) was "
                   "given up; a reboot, or newer firmware, often brings it back.",
         .hosts = {}});
  }
}

}  // namespace muster::launcher
