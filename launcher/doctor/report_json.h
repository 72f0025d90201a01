// A doctor's report as JSON: for programs, and on its way from a host.
#pragma once

#include <optional>

#include "base/json.h"
#include "launcher/doctor/report.h"

namespace muster::launcher {

// {"errors": 1, "findings": [{"severity", "subject", "what", "why", "do", "hosts"}],
//  "fine": [{"subject", "found"}], "versions": {}}
base::Json ReportJson(const Report& report);

// The other way, for a host that is not believed: texts are made safe to show and cut to 2,000
// bytes, and there are 200 findings, fine things and versions each at most. nullopt: it is no such
// report.
std::optional<Report> ReadReport(const base::Json& json);

}  // namespace muster::launcher
