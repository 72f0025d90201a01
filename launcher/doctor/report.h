// What `muster doctor` has found: the one value that its views print.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace muster::launcher {

enum class Severity {
  kError,    // a job will fail, hang, or run many times slower
  kWarning,  // it may, or runs slower than it could
  kNote,     // worth knowing
};

// "error", "warning", "note".
const char* SeverityWord(Severity severity);

// Something that is wrong. Each text is a sentence or more, without a line feed.
struct Finding {
  Severity severity = Severity::kNote;
  std::string subject;             // "shared memory": the room that was looked into
  std::string what;                // what is wrong, with its figures
  std::string why;                 // why that matters to a job
  std::string remedy;              // what to do
  std::vector<std::string> hosts;  // where; empty: on this machine

  bool operator==(const Finding&) const = default;
};

// Something that was looked at and is as it should be.
struct Fine {
  std::string subject;
  std::string found;  // a phrase: "24 GiB, of which 23 GiB are free"

  bool operator==(const Fine&) const = default;
};

struct Report {
  std::vector<Finding> findings;
  std::vector<Fine> fine;
  // What hosts of one job should have alike, by name: "kernel" -> "6.1.0-28".
  std::map<std::string, std::string> versions;

  bool operator==(const Report&) const = default;
};

// The most severe first; among equals, in the order in which they were found.
void SortFindings(Report& report);

// Whether a job had better not be started.
bool HasErrors(const Report& report);

// "64 MiB", "1.5 GiB", "500 B": a size for people.
std::string Size(double bytes);

}  // namespace muster::launcher
