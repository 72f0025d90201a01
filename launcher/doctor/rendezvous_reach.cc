#include "launcher/doctor/rendezvous_reach.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/phrases.h"
#include "rendezvous/net/endpoint.h"

namespace muster::launcher {
namespace {

void AddRendezvous(Severity severity, std::string what, const char* why, std::string remedy,
                   Report& report) {
  report.findings.push_back({.severity = severity,
                             .subject = "rendezvous",
                             .what = std::move(what),
                             .why = why,
                             .remedy = std::move(remedy),
                             .hosts = {}});
}

const char* RemedyFor(DialOutcome outcome) {
  switch (outcome) {
    case DialOutcome::kRefused:
      return "See there whether musterd runs and on which port and address it listens (`ss "
             "-ltnp`); "
             "a firewall that rejects answers the same.";
    case DialOutcome::kSilent:
      return "See whether that machine is up, and let its firewall, and those on the way, pass TCP "
             "to that port.";
    case DialOutcome::kNoRoute:
      return "See `ip route get` with that address: a route, a gateway or an interface is missing.";
    case DialOutcome::kConnected:
    case DialOutcome::kFailed:
      break;
  }
  return "See that the address is the one that is meant.";
}

// As between hosts (ways.cc).
constexpr std::chrono::milliseconds kClockOff(1000);
constexpr std::chrono::milliseconds kClockFarOff(60'000);

void JudgeClock(const rendezvous::ClockReading& clock, const std::string& where, Report& report) {
  const std::chrono::milliseconds off = std::chrono::abs(clock.ahead);
  if (off - clock.uncertainty < kClockOff) {
    report.fine.push_back(
        {"clock", absl::StrCat("that of the rendezvous differs by ", base::Seconds(off),
                               ", give or take ", base::Seconds(clock.uncertainty))});
    return;
  }
  report.findings.push_back(
      {.severity = off >= kClockFarOff ? Severity::kError : Severity::kWarning,
       .subject = "clock",
       .what = absl::StrCat("this machine's clock is ", base::Seconds(off),
                            clock.ahead.count() > 0 ? " behind" : " ahead of",
                            " that of the rendezvous at ", where, "."),
       .why = "Logs and event logs of several machines tell of things in the wrong order; "
              "certificates are refused once it is far off, and make sees files from the future.",
       .remedy = "Let chrony or systemd-timesyncd keep both clocks, and see `timedatectl` on both "
                 "for which of them is wrong.",
       .hosts = {}});
}

}  // namespace

RendezvousReach ReachRendezvous(const rendezvous::DaemonOptions& daemon) {
  RendezvousReach reach{.endpoint = daemon.endpoint, .resolved = Resolve(daemon.endpoint.host)};
  const std::vector<std::string>& addresses = reach.resolved.addresses;
  reach.leads_to_loopback =
      !addresses.empty() && !rendezvous::IsLoopbackLiteral(daemon.endpoint.host) &&
      std::all_of(addresses.begin(), addresses.end(), rendezvous::IsLoopbackLiteral);
  for (const std::string& address : addresses) {
    const Dialled dialled = Dial(address, daemon.endpoint.port, daemon.patience);
    reach.outcome = dialled.outcome;
    reach.dialled = address;
    reach.cause = dialled.cause;
    reach.took = dialled.took;
    if (dialled.outcome == DialOutcome::kConnected) break;
  }
  if (reach.outcome != DialOutcome::kConnected) return reach;
  const auto clock = rendezvous::ReadDaemonClock(daemon);
  reach.answer_trouble = std::string(clock.status().message());
  if (clock.ok()) reach.clock = *clock;
  return reach;
}

void Judge(const RendezvousReach& reach, Report& report) {
  const std::string where = rendezvous::ToString(reach.endpoint);
  if (reach.resolved.addresses.empty()) {
    return AddRendezvous(
        Severity::kError,
        absl::StrCat("the name of the rendezvous, ", reach.endpoint.host, ", does not resolve (",
                     reach.resolved.trouble, ")."),
        "No node of this machine can join the job.",
        "Correct the name, give it an entry in DNS or a line in /etc/hosts, or write the address.",
        report);
  }
  if (reach.leads_to_loopback) {
    AddRendezvous(
        Severity::kWarning,
        absl::StrCat(reach.endpoint.host, " leads to ", base::ShortList(reach.resolved.addresses),
                     " here, which only this machine can reach."),
        "Other machines see another address under that name, and workers here would be "
        "told this one.",
        "Take the name out of the line of /etc/hosts with that address, and write it "
        "behind the address by which others reach this machine.",
        report);
  }
  if (reach.outcome != DialOutcome::kConnected) {
    return AddRendezvous(
        Severity::kError,
        absl::StrCat("no connection to ", where, " (", reach.dialled, "): ", reach.cause, "."),
        "No node of this machine can join the job.", RemedyFor(reach.outcome), report);
  }
  if (!reach.answer_trouble.empty()) {
    return AddRendezvous(
        Severity::kError,
        absl::StrCat("there is a connection to ", where, ", but no answer: ", reach.answer_trouble,
                     "."),
        "No node of this machine can join the job.",
        "See that it is a musterd, and that both have the same token (--token-file), certificates "
        "of one authority (--tls-ca) or --insecure; and that both clocks are right.",
        report);
  }
  if (reach.clock) JudgeClock(*reach.clock, where, report);
  report.fine.push_back(
      {"rendezvous",
       absl::StrFormat("%s (%s) answers, %.1f ms away", where, reach.dialled,
                       std::chrono::duration<double, std::milli>(reach.took).count())});
}

}  // namespace muster::launcher
