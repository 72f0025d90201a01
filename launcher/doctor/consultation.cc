#include "launcher/doctor/consultation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/phrases.h"
#include "launcher/doctor/report_json.h"
#include "launcher/doctor/way.h"
#include "rendezvous/net/host_address.h"

namespace muster::launcher {

Consultation::Consultation(std::vector<std::string> hosts, std::function<std::string()> make_key)
    : hosts_(std::move(hosts)), make_key_(std::move(make_key)), patients_(hosts_.size()) {
  ways_.hosts = hosts_;
  for (int host = 0; host < static_cast<int>(hosts_.size()); ++host) awaited_.insert(host);
}

std::optional<std::string> Consultation::OnLine(int host, std::string_view line) {
  const base::Json json = base::ParseJson(line);
  if (!json.is_object() || awaited_.count(host) == 0) return std::nullopt;
  if (!measures_) {
    TakeReport(patients_[static_cast<std::size_t>(host)], json);
    if (patients_[static_cast<std::size_t>(host)].report) awaited_.erase(host);
  } else {
    TakeMeasurement(host, json);
  }
  return MaybeNext();
}

std::optional<std::string> Consultation::OnGone(int host, const std::string& reason) {
  std::string& gone = patients_[static_cast<std::size_t>(host)].gone;
  if (gone.empty()) gone = reason;
  return awaited_.erase(host) > 0 ? MaybeNext() : std::nullopt;
}

std::optional<std::string> Consultation::OnDeadline() {
  for (const int host : awaited_) {
    std::string& gone = patients_[static_cast<std::size_t>(host)].gone;
    if (gone.empty()) gone = "it has not answered in time";
  }
  if (awaited_.empty()) return std::nullopt;
  awaited_.clear();
  return MaybeNext();
}

void Consultation::TakeReport(Patient& patient, const base::Json& json) {
  const auto report = json.find("report");
  if (report == json.end()) return;
  patient.report = ReadReport(*report);
  const auto address = json.find("address");
  const auto port = json.find("port");
  // What others are told to connect to is an address, whatever a host says.
  if (address == json.end() || !address->is_string() || port == json.end() ||
      !port->is_number_unsigned() || *port > 65535 ||
      !rendezvous::ParseHostAddress(address->get<std::string>())) {
    return;
  }
  patient.address = address->get<std::string>();
  patient.port = port->get<std::uint16_t>();
}

void Consultation::TakeMeasurement(int host, const base::Json& json) {
  if (json.value("stage", base::Json()) != stage_) return;
  for (const Encounter& one : stages_[stage_ - 1]) {
    if (one.from == host && json.contains("way")) {
      ways_.measured[{one.from, one.to}].way = ReadWay(json["way"]);
      awaited_.erase(host);
    } else if (one.to == host && json.contains("arrival")) {
      ways_.measured[{one.from, one.to}].arrival = ReadArrival(json["arrival"]);
      awaited_.erase(host);
    }
  }
}

std::optional<std::string> Consultation::MaybeNext() {
  if (!awaited_.empty()) return std::nullopt;
  if (!std::exchange(measures_, true)) {
    std::vector<int> able;
    for (int host = 0; host < static_cast<int>(patients_.size()); ++host) {
      const Patient& patient = patients_[static_cast<std::size_t>(host)];
      if (patient.gone.empty() && patient.port != 0) able.push_back(host);
    }
    stages_ = Tournament(able, kMaxRounds);
  }
  while (stage_ < stages_.size()) {
    Stage& stage = stages_[stage_++];
    std::erase_if(stage, [this](const Encounter& one) {
      return !patients_[static_cast<std::size_t>(one.from)].gone.empty() ||
             !patients_[static_cast<std::size_t>(one.to)].gone.empty();
    });
    if (!stage.empty()) return Announce();
  }
  return std::nullopt;
}

std::string Consultation::Announce() {
  base::Json encounters = base::Json::array();
  for (const Encounter& one : stages_[stage_ - 1]) {
    const Patient& to = patients_[static_cast<std::size_t>(one.to)];
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

void Consultation::AddHostsFindings(Report& result) const {
  for (std::size_t host = 0; host < patients_.size(); ++host) {
    const Patient& patient = patients_[host];
    if (!patient.gone.empty()) {
      result.findings.push_back(
          {.severity = Severity::kError,
           .subject = "host",
           .what = absl::StrCat(patient.gone, "."),
           .why = "A job that is to run there cannot start, or not go on.",
           .remedy = "Try `ssh` to it from here, without a password and without a question, and "
                     "see that it is up.",
           .hosts = {hosts_[host]}});
    }
    if (!patient.report) continue;
    for (const Finding& one : patient.report->findings) {
      const auto alike =
          std::find_if(result.findings.begin(), result.findings.end(), [&](const Finding& other) {
            return other.severity == one.severity && other.subject == one.subject &&
                   other.what == one.what && !other.hosts.empty();
          });
      Finding& entry = alike != result.findings.end() ? *alike : result.findings.emplace_back(one);
      entry.hosts.push_back(hosts_[host]);
    }
    if (patient.gone.empty() && patient.port == 0) {
      result.findings.push_back(
          {.severity = Severity::kError,
           .subject = "network",
           .what = "it has no address by which others could reach it.",
           .why = "Ranks on it cannot take part in a job with those on other hosts.",
           .remedy = "Bring up an interface with an address (`ip addr`).",
           .hosts = {hosts_[host]}});
    }
  }
}

Report Consultation::Result() const {
  Report result;
  AddHostsFindings(result);
  // Of what each host found in order, only that all of them looked at it.
  std::map<std::string, std::map<std::string, std::string>> versions;
  std::map<std::string, std::size_t> looked;
  std::size_t reports = 0;
  for (std::size_t host = 0; host < patients_.size(); ++host) {
    const std::optional<Report>& report = patients_[host].report;
    if (!report) continue;
    ++reports;
    versions[hosts_[host]] = report->versions;
    std::set<std::string> subjects;
    for (const Fine& one : report->fine) subjects.insert(one.subject);
    for (const Finding& one : report->findings) subjects.erase(one.subject);
    for (const std::string& subject : subjects) ++looked[subject];
  }
  JudgeDifferences(versions, result);
  Judge(ways_, result);
  for (const auto& [subject, count] : looked) {
    if (subject == "versions") continue;
    result.fine.push_back({subject, count == reports && count == hosts_.size()
                                        ? "on all hosts"
                                        : absl::StrCat("on ", base::Count(count, "host"))});
  }
  const std::size_t others = hosts_.size() - 1;
  if (others > kMaxRounds && !ways_.measured.empty()) {
    result.fine.push_back({"ways", absl::StrCat("a sample: each host was measured with ",
                                                kMaxRounds, " of the ", others, " others")});
  }
  SortFindings(result);
  return result;
}

}  // namespace muster::launcher
