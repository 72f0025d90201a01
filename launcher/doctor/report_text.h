// A doctor's report for people: what is wrong, the most severe first, and then a short table of
// what was looked at and is fine. At most 80 columns wide.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "launcher/doctor/report.h"

namespace muster::launcher {

// `of` is who was looked at: "node0", "4 hosts". The findings are shown in the order they have.
std::string ReportText(const Report& report, const std::string& of);

// `text` in lines of at most 80 columns that begin with `indent` blanks, the first with `begin`
// instead. A word that does not fit a line has one of its own, however long.
std::string Wrapped(absl::string_view begin, absl::string_view text, std::size_t indent);

}  // namespace muster::launcher
