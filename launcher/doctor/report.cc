#include "launcher/doctor/report.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "base/safe_text.h"
#include "base/text.h"

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

void Report::Add(Severity severity, std::string subject, std::string what, std::string why,
                 std::string remedy) {
  findings.push_back({severity, std::move(subject), std::move(what), std::move(why),
                      std::move(remedy), /*hosts=*/{}});
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

namespace {

constexpr std::size_t kReportWidth = 80;
constexpr std::size_t kReportIndent = 7;

// Text from the machine, such as a directory's name, may hold any bytes.
std::string Shown(absl::string_view text) {
  return base::SafeLine({text.data(), text.size()});
}

std::string Summary(const Report& report, const std::string& of) {
  std::vector<std::string> counts;
  for (const Severity severity : {Severity::kError, Severity::kWarning, Severity::kNote}) {
    const auto count = static_cast<std::size_t>(
        std::count_if(report.findings.begin(), report.findings.end(),
                      [severity](const Finding& one) { return one.severity == severity; }));
    if (count > 0) counts.push_back(base::Count(count, SeverityWord(severity)));
  }
  return absl::StrCat(of, ": ", counts.empty() ? "no problems found" : absl::StrJoin(counts, ", "),
                      "\n");
}

std::string FindingText(const Finding& finding) {
  std::string begin = absl::StrCat(SeverityWord(finding.severity), ": ");
  if (!finding.hosts.empty()) absl::StrAppend(&begin, base::ShortList(finding.hosts), ": ");
  std::string text =
      Wrapped("", absl::StrCat(begin, finding.subject, ": ", finding.what), kReportIndent);
  text += Wrapped("  why: ", finding.why, kReportIndent);
  text += Wrapped("  do:  ", finding.remedy, kReportIndent);
  return text;
}

}  // namespace

std::string Wrapped(absl::string_view begin, absl::string_view text, std::size_t indent) {
  std::string out(begin);
  std::size_t column = out.size();
  bool is_first = true;
  for (const absl::string_view word : absl::StrSplit(Shown(text), ' ', absl::SkipEmpty())) {
    if (!is_first && column + 1 + word.size() > kReportWidth) {
      absl::StrAppend(&out, "\n", std::string(indent, ' '));
      column = indent;
    } else if (!is_first) {
      out += ' ';
      ++column;
    }
    absl::StrAppend(&out, word);
    column += word.size();
    is_first = false;
  }
  return out + "\n";
}

std::string ReportText(const Report& report, const std::string& of) {
  std::string text = Summary(report, of);
  for (const Finding& finding : report.findings) {
    absl::StrAppend(&text, "\n", FindingText(finding));
  }
  if (report.fine.empty()) return text;
  std::size_t width = 0;
  for (const Passed& fine : report.fine) width = std::max(width, fine.subject.size());
  absl::StrAppend(&text, "\nchecked, no problem:\n");
  for (const Passed& fine : report.fine) {
    const std::string begin =
        absl::StrCat("  ", fine.subject, std::string(width - fine.subject.size() + 2, ' '));
    text += Wrapped(begin, fine.found, begin.size());
  }
  return text;
}

}  // namespace muster::launcher
