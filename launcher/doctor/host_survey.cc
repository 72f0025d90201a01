#include "launcher/doctor/host_survey.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

#include "base/text.h"
#include "launcher/doctor/link_measurement.h"
#include "rendezvous/core/values/phrases.h"
#include "rendezvous/net/peer.h"

namespace muster::launcher {

std::vector<Stage> PairingSchedule(const std::vector<int>& hosts, std::size_t max_rounds) {
  std::vector<Stage> stages;
  if (hosts.size() < 2) return stages;
  constexpr int kNobody = -1;
  // The circle method: the first host stays, the others move by one place in each round, and
  // opposite hosts are paired.
  std::vector<int> circle = hosts;
  if (circle.size() % 2 != 0) circle.push_back(kNobody);
  const std::size_t rounds = std::min(circle.size() - 1, max_rounds);
  for (std::size_t round = 0; round < rounds; ++round) {
    Stage there;
    Stage back;
    for (std::size_t i = 0; i < circle.size() / 2; ++i) {
      const int one = circle[i];
      const int other = circle[circle.size() - 1 - i];
      if (one == kNobody || other == kNobody) continue;
      there.push_back({one, other});
      back.push_back({other, one});
    }
    stages.push_back(std::move(there));
    stages.push_back(std::move(back));
    std::rotate(circle.begin() + 1, circle.end() - 1, circle.end());
  }
  return stages;
}

HostSurvey::HostSurvey(std::vector<std::string> hosts, std::function<std::string()> make_key)
    : hosts_(std::move(hosts)), make_key_(std::move(make_key)), states_(hosts_.size()) {
  links_.hosts = hosts_;
  for (int host = 0; host < static_cast<int>(hosts_.size()); ++host) awaited_.insert(host);
}

std::optional<std::string> HostSurvey::OnLine(int host, std::string_view line) {
  const base::Json json = base::ParseJson(line);
  if (!json.is_object() || awaited_.count(host) == 0) return std::nullopt;
  if (!measures_) {
    TakeReport(states_[static_cast<std::size_t>(host)], json);
    if (states_[static_cast<std::size_t>(host)].report) awaited_.erase(host);
  } else {
    TakeMeasurement(host, json);
  }
  return MaybeNext();
}

std::optional<std::string> HostSurvey::OnGone(int host, const std::string& reason) {
  std::string& gone = states_[static_cast<std::size_t>(host)].gone;
  if (gone.empty()) gone = reason;
  return awaited_.erase(host) > 0 ? MaybeNext() : std::nullopt;
}

std::optional<std::string> HostSurvey::OnDeadline() {
  for (const int host : awaited_) {
    std::string& gone = states_[static_cast<std::size_t>(host)].gone;
    if (gone.empty()) gone = "it has not answered in time";
  }
  if (awaited_.empty()) return std::nullopt;
  awaited_.clear();
  return MaybeNext();
}

void HostSurvey::TakeReport(HostState& state, const base::Json& json) {
  const auto report = json.find("report");
  if (report == json.end()) return;
  state.report = ReadReport(*report);
  const auto address = json.find("address");
  const auto port = json.find("port");
  // Other hosts connect to this address, so it must be one, whatever the host sends.
  if (address == json.end() || !address->is_string() || port == json.end() ||
      !port->is_number_unsigned() || *port > 65535 ||
      !rendezvous::ParseHostAddress(address->get<std::string>())) {
    return;
  }
  state.address = address->get<std::string>();
  state.port = port->get<std::uint16_t>();
}

void HostSurvey::TakeMeasurement(int host, const base::Json& json) {
  if (json.value("stage", base::Json()) != stage_) return;
  for (const Pairing& one : stages_[stage_ - 1]) {
    if (one.from == host && json.contains("link")) {
      links_.measured[{one.from, one.to}].link = ReadLinkMeasurement(json["link"]);
      awaited_.erase(host);
    } else if (one.to == host && json.contains("arrival")) {
      links_.measured[{one.from, one.to}].arrival = ReadArrival(json["arrival"]);
      awaited_.erase(host);
    }
  }
}

std::optional<std::string> HostSurvey::MaybeNext() {
  if (!awaited_.empty()) return std::nullopt;
  if (!std::exchange(measures_, true)) {
    std::vector<int> able;
    for (int host = 0; host < static_cast<int>(states_.size()); ++host) {
      const HostState& state = states_[static_cast<std::size_t>(host)];
      if (state.gone.empty() && state.port != 0) able.push_back(host);
    }
    stages_ = PairingSchedule(able, kMaxRounds);
  }
  while (stage_ < stages_.size()) {
    Stage& stage = stages_[stage_++];
    std::erase_if(stage, [this](const Pairing& one) {
      return !states_[static_cast<std::size_t>(one.from)].gone.empty() ||
             !states_[static_cast<std::size_t>(one.to)].gone.empty();
    });
    if (!stage.empty()) return Announce();
  }
  return std::nullopt;
}

std::string HostSurvey::Announce() {
  base::Json encounters = base::Json::array();
  for (const Pairing& one : stages_[stage_ - 1]) {
    const HostState& to = states_[static_cast<std::size_t>(one.to)];
    encounters.push_back({{"from", one.from},
                          {"to", one.to},
                          {"address", to.address},
                          {"port", to.port},
                          {"key", make_key_()}});
    awaited_.insert(one.from);
    awaited_.insert(one.to);
  }
  return base::JsonText({{"stage", stage_}, {"encounters", std::move(encounters)}}) + "\n";
}

void HostSurvey::AddHostsFindings(Report& result) const {
  for (std::size_t host = 0; host < states_.size(); ++host) {
    const HostState& state = states_[host];
    if (!state.gone.empty()) {
      result.findings.push_back({.severity = Severity::kError,
                                 .subject = "host",
                                 .what = absl::StrCat(state.gone, "."),
                                 .why = "A job cannot start or continue there.",
                                 .remedy = "Check that it is up and that `ssh` to it works from "
                                           "here without a password or prompt.",
                                 .hosts = {hosts_[host]}});
    }
    if (!state.report) continue;
    for (const Finding& one : state.report->findings) {
      const auto alike =
          std::find_if(result.findings.begin(), result.findings.end(), [&](const Finding& other) {
            return other.severity == one.severity && other.subject == one.subject &&
                   other.what == one.what && !other.hosts.empty();
          });
      Finding& entry = alike != result.findings.end() ? *alike : result.findings.emplace_back(one);
      entry.hosts.push_back(hosts_[host]);
    }
    if (state.gone.empty() && state.port == 0) {
      result.findings.push_back(
          {.severity = Severity::kError,
           .subject = "network",
           .what = "it has no address that other hosts can reach.",
           .why = "Ranks on it cannot take part in a job with those on other hosts.",
           .remedy = "Bring up an interface with an address (`ip addr`).",
           .hosts = {hosts_[host]}});
    }
  }
}

Report HostSurvey::Result() const {
  Report result;
  AddHostsFindings(result);
  // For checks that passed, reports only on how many hosts.
  std::map<std::string, std::map<std::string, std::string>> versions;
  std::map<std::string, std::size_t> looked;
  std::size_t reports = 0;
  for (std::size_t host = 0; host < states_.size(); ++host) {
    const std::optional<Report>& report = states_[host].report;
    if (!report) continue;
    ++reports;
    versions[hosts_[host]] = report->versions;
    std::set<std::string> subjects;
    for (const Passed& one : report->fine) subjects.insert(one.subject);
    for (const Finding& one : report->findings) subjects.erase(one.subject);
    for (const std::string& subject : subjects) ++looked[subject];
  }
  JudgeDifferences(versions, result);
  Judge(links_, result);
  for (const auto& [subject, count] : looked) {
    if (subject == "versions") continue;
    result.fine.push_back({subject, count == reports && count == hosts_.size()
                                        ? "on all hosts"
                                        : absl::StrCat("on ", base::Count(count, "host"))});
  }
  const std::size_t others = hosts_.size() - 1;
  if (others > kMaxRounds && !links_.measured.empty()) {
    result.fine.push_back({"links", absl::StrCat("a sample: each host was measured with ",
                                                 kMaxRounds, " of the ", others, " others")});
  }
  SortFindings(result);
  return result;
}

namespace {

constexpr std::size_t kMaxEntries = 200;
constexpr std::size_t kMaxText = 2000;

std::string TextOf(const base::Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return "";
  return rendezvous::OneLine(found->get_ref<const std::string&>(), kMaxText);
}

// Calls `read` with each object in the array `name`.
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
  for (const Passed& one : report.fine) {
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
    report.Add(SeverityOf(TextOf(one, "severity")), TextOf(one, "subject"), TextOf(one, "what"),
               TextOf(one, "why"), TextOf(one, "do"));
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
