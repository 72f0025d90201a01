#include "launcher/doctor/report_json.h"

#include <algorithm>
#include <cstddef>

#include "rendezvous/wire/printable.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kMaxEntries = 200;
constexpr std::size_t kMaxText = 2000;

std::string TextOf(const base::Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return "";
  return rendezvous::OneLine(found->get_ref<const std::string&>(), kMaxText);
}

// The entries of the array `name`, as far as they are objects.
template <typename Read>
void ForEachObject(const base::Json& json, const char* name, Read read) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return;
  std::size_t count = 0;
  for (const base::Json& entry : *found) {
    if (entry.is_object() && ++count <= kMaxEntries) read(entry);
  }
}

Severity SeverityOf(const std::string& word) {
  for (const Severity one : {Severity::kError, Severity::kWarning}) {
    if (word == SeverityWord(one)) return one;
  }
  return Severity::kNote;
}

}  // namespace

base::Json ReportJson(const Report& report) {
  base::Json json;
  json["errors"] =
      std::count_if(report.findings.begin(), report.findings.end(),
                    [](const Finding& one) { return one.severity == Severity::kError; });
  json["findings"] = base::Json::array();
  for (const Finding& one : report.findings) {
    json["findings"].push_back({{"severity", SeverityWord(one.severity)},
                                {"subject", one.subject},
                                {"what", one.what},
                                {"why", one.why},
                                {"do", one.remedy},
                                {"hosts", one.hosts}});
  }
  json["fine"] = base::Json::array();
  for (const Fine& one : report.fine) {
    json["fine"].push_back({{"subject", one.subject}, {"found", one.found}});
  }
  json["versions"] = base::Json::object();
  for (const auto& [name, version] : report.versions) json["versions"][name] = version;
  return json;
}

std::optional<Report> ReadReport(const base::Json& json) {
  if (!json.is_object() || !json.contains("findings") || !json.contains("fine")) {
    return std::nullopt;
  }
  Report report;
  ForEachObject(json, "findings", [&](const base::Json& one) {
    report.findings.push_back({.severity = SeverityOf(TextOf(one, "severity")),
                               .subject = TextOf(one, "subject"),
                               .what = TextOf(one, "what"),
                               .why = TextOf(one, "why"),
                               .remedy = TextOf(one, "do"),
                               .hosts = {}});
  });
  ForEachObject(json, "fine", [&](const base::Json& one) {
    report.fine.push_back({.subject = TextOf(one, "subject"), .found = TextOf(one, "found")});
  });
  const auto versions = json.find("versions");
  if (versions == json.end() || !versions->is_object()) return report;
  for (const auto& [name, version] : versions->items()) {
    if (report.versions.size() >= kMaxEntries) break;
    report.versions[rendezvous::OneLine(name, kMaxText)] = TextOf(*versions, name.c_str());
  }
  return report;
}

}  // namespace muster::launcher
