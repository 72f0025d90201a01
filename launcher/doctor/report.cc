#include "launcher/doctor/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster::launcher {

const char* SeverityWord(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kNote:
      break;
  }
  return "note";
}

void SortFindings(Report& report) {
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
}

bool HasErrors(const Report& report) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [](const Finding& one) { return one.severity == Severity::kError; });
}

std::string Size(double bytes) {
  const char* unit = "B";
  for (const char* const next : {"KiB", "MiB", "GiB", "TiB", "PiB"}) {
    if (bytes < 1024) break;
    bytes /= 1024;
    unit = next;
  }
  return bytes < 10 && bytes != static_cast<int>(bytes) ? absl::StrFormat("%.1f %s", bytes, unit)
                                                        : absl::StrFormat("%.0f %s", bytes, unit);
}

}  // namespace muster::launcher
