#include "launcher/doctor/report_text.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/phrases.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kReportWidth = 80;
constexpr std::size_t kReportIndent = 7;

// What comes from the machine, such as the name of a directory, may hold anything.
std::string Shown(absl::string_view text) {
  std::string shown(text);
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return absl::ascii_iscntrl(c); }, '?');
  return shown;
}

std::string Summary(const Report& report, const std::string& of) {
  std::vector<std::string> counts;
  for (const Severity severity : {Severity::kError, Severity::kWarning, Severity::kNote}) {
    const auto count = static_cast<std::size_t>(
        std::count_if(report.findings.begin(), report.findings.end(),
                      [severity](const Finding& one) { return one.severity == severity; }));
    if (count > 0) counts.push_back(base::Count(count, SeverityWord(severity)));
  }
  return absl::StrCat(of, ": ", counts.empty() ? "nothing is wrong" : absl::StrJoin(counts, ", "),
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
  for (const Fine& fine : report.fine) width = std::max(width, fine.subject.size());
  absl::StrAppend(&text, "\nlooked at, and fine:\n");
  for (const Fine& fine : report.fine) {
    const std::string begin =
        absl::StrCat("  ", fine.subject, std::string(width - fine.subject.size() + 2, ' '));
    text += Wrapped(begin, fine.found, begin.size());
  }
  return text;
}

}  // namespace muster::launcher
