#include "launcher/doctor/names.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/phrases.h"
#include "launcher/machine/local_address.h"
#include "rendezvous/net/endpoint.h"

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kSlowResolver(1000);

constexpr char kWhyNames[] =
    "c10d, Gloo and NCCL's bootstrap offer other nodes the address to which this machine's own "
    "name "
    "leads. Muster tells Gloo a better one, but programs that are started otherwise, or that ask "
    "for the name themselves, wait for one another and time out.";

bool IsOwn(const Names& names, const std::string& address) {
  return std::find(names.own.begin(), names.own.end(), address) != names.own.end();
}

void JudgeOwnName(const Names& names, Report& report) {
  const auto add = [&](Severity severity, const std::string& what, const std::string& remedy) {
    report.findings.push_back({.severity = severity,
                               .subject = "names",
                               .what = what,
                               .why = kWhyNames,
                               .remedy = remedy,
                               .hosts = {}});
  };
  // The same words on every host, so that what several have is told once.
  if (names.addresses.empty()) {
    return add(Severity::kWarning,
               absl::StrCat("this machine's own name does not resolve (", names.trouble, ")."),
               "Give it an entry in DNS, or a line in /etc/hosts with the address by which others "
               "reach it (`ip addr`).");
  }
  const std::string leads = base::ShortList(names.addresses);
  if (std::any_of(names.addresses.begin(), names.addresses.end(),
                  [&](const std::string& one) { return IsOwn(names, one); })) {
    report.fine.push_back({"names", absl::StrCat(names.host_name, " leads to ", leads)});
    return;
  }
  if (std::all_of(names.addresses.begin(), names.addresses.end(), rendezvous::IsLoopbackLiteral)) {
    return add(Severity::kWarning,
               absl::StrCat("this machine's own name leads to ", leads,
                            ", which only this machine can reach."),
               "Take the name out of the line of /etc/hosts with that address, and write it behind "
               "the address by which others reach this machine (`ip addr`).");
  }
  add(Severity::kError,
      absl::StrCat("this machine's own name, ", names.host_name, ", leads to ", leads,
                   ", which no interface of this machine has."),
      absl::StrCat("Correct DNS or /etc/hosts; this machine has ",
                   names.own.empty() ? "no address" : base::ShortList(names.own), "."));
}

}  // namespace

Resolved Resolve(const std::string& host) {
  Resolved resolved;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    resolved.trouble = ::gai_strerror(error);
    return resolved;
  }
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) == 0 &&
        std::find(resolved.addresses.begin(), resolved.addresses.end(), text) ==
            resolved.addresses.end()) {
      resolved.addresses.emplace_back(text);
    }
  }
  ::freeaddrinfo(found);
  return resolved;
}

Names ReadNames() {
  Names names{.host_name = HostName(), .own = InterfaceAddresses()};
  const auto start = steady_clock::now();
  Resolved resolved = Resolve(names.host_name);
  names.took = std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
  names.addresses = std::move(resolved.addresses);
  names.trouble = std::move(resolved.trouble);
  names.has_localhost = !Resolve("localhost").addresses.empty();
  return names;
}

void Judge(const Names& names, Report& report) {
  JudgeOwnName(names, report);
  if (names.took >= kSlowResolver) {
    report.findings.push_back(
        {.severity = Severity::kWarning,
         .subject = "names",
         .what = absl::StrCat("to look up this machine's own name took ", base::Seconds(names.took),
                              "."),
         .why = "Every worker looks up names as it starts, and again after each restart.",
         .remedy = "See which of the name servers in /etc/resolv.conf does not answer, and take it "
                   "out, or write the hosts of the job into /etc/hosts.",
         .hosts = {}});
  }
  if (!names.has_localhost) {
    report.findings.push_back(
        {.severity = Severity::kWarning,
         .subject = "names",
         .what = "localhost does not resolve.",
         .why = "Programs that mean this machine by it cannot connect; Muster itself takes "
                "127.0.0.1 for it.",
         .remedy = "Write the line \"127.0.0.1 localhost\" into /etc/hosts.",
         .hosts = {}});
  }
  if (names.own.empty()) {
    report.findings.push_back(
        {.severity = Severity::kNote,
         .subject = "names",
         .what = "no network interface has an address, but for loopback.",
         .why = "Jobs on this machine alone can run; no other machine can take part.",
         .remedy = "Bring an interface up, or give the container a network.",
         .hosts = {}});
  }
}

}  // namespace muster::launcher
