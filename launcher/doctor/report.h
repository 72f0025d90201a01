// The findings of `muster doctor`, as one value for all its output formats.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::launcher {

enum class Severity {
  kError,    // a job will fail, hang, or run many times slower
  kWarning,  // a job may fail, or runs slower than it could
  kNote,     // worth knowing
};

// "error", "warning", "note".
const char* SeverityWord(Severity severity);

// One problem. Each text is one or more sentences without a line feed.
struct Finding {
  Severity severity = Severity::kNote;
  std::string subject;             // what was checked: "shared memory"
  std::string what;                // the problem, with its figures
  std::string why;                 // why it matters to a job
  std::string remedy;              // what to do
  std::vector<std::string> hosts;  // where; empty: on this machine

  bool operator==(const Finding&) const = default;
};

// A check that passed.
struct Passed {
  std::string subject;
  std::string found;  // a phrase: "24 GiB, of which 23 GiB are free"

  bool operator==(const Passed&) const = default;
};

struct Report {
  std::vector<Finding> findings;
  std::vector<Passed> fine;
  // What should be equal on all hosts of a job, by name: "kernel" -> "6.1.0-28".
  std::map<std::string, std::string> versions;

  // Adds a finding that names no hosts of its own, with the texts in the order of Finding.
  void Add(Severity severity, std::string subject, std::string what, std::string why,
           std::string remedy);

  bool operator==(const Report&) const = default;
};

// Most severe first, otherwise in the order found.
void SortFindings(Report& report);

// Whether a job should not be started.
bool HasErrors(const Report& report);

// "64 MiB", "1.5 GiB", "500 B".
std::string Size(double bytes);

// A doctor's report as text: findings first, then a short table of passed checks. At most 80
// columns wide.

// `of` is what was checked: "node0", "4 hosts". Findings keep their order.
std::string ReportText(const Report& report, const std::string& of);

// `text` in lines of at most 80 columns. The first line starts with `begin`, the others with
// `indent` spaces. A word that is too long gets a line of its own.
std::string Wrapped(absl::string_view begin, absl::string_view text, std::size_t indent);

}  // namespace muster::launcher
