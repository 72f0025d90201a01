#include "launcher/doctor/network.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "base/failure.h"
#include "base/text.h"
#include "launcher/machine/network.h"
#include "rendezvous/net/endpoint.h"

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

bool AwaitEvents(int fd, short events, steady_clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
    pollfd wanted = {fd, events, 0};
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::max<long>(0, left)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

DialOutcome OutcomeOf(int error) {
  switch (error) {
    case 0:
      return DialOutcome::kConnected;
    case ECONNREFUSED:
      return DialOutcome::kRefused;
    case ETIMEDOUT:
      return DialOutcome::kSilent;
    case EHOSTUNREACH:
    case ENETUNREACH:
      return DialOutcome::kNoRoute;
    default:
      return DialOutcome::kFailed;
  }
}

// Returns 0 or the error that kept it from connecting.
int Connect(int fd, const addrinfo& peer, milliseconds limit) {
  if (::connect(fd, peer.ai_addr, peer.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!AwaitWritable(fd, steady_clock::now() + limit)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

Dialled Dial(const std::string& address, std::uint16_t port, milliseconds limit) {
  Dialled dialled;
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* peer = nullptr;
  if (const int error = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &peer);
      error != 0) {
    dialled.cause = ::gai_strerror(error);
    return dialled;
  }
  const auto start = steady_clock::now();
  dialled.socket.reset(::socket(peer->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int error = dialled.socket.valid() ? Connect(dialled.socket.get(), *peer, limit) : errno;
  ::freeaddrinfo(peer);
  dialled.took = steady_clock::now() - start;
  dialled.outcome = OutcomeOf(error);
  if (error == 0) return dialled;
  dialled.cause = base::SystemCause(error);
  dialled.socket.reset();
  return dialled;
}

bool AwaitReadable(int fd, steady_clock::time_point deadline) {
  return AwaitEvents(fd, POLLIN, deadline);
}

bool AwaitWritable(int fd, steady_clock::time_point deadline) {
  return AwaitEvents(fd, POLLOUT, deadline);
}

namespace {

constexpr milliseconds kSlowResolver(1000);

constexpr char kWhyNames[] =
    "c10d, Gloo and NCCL's bootstrap give other nodes the address that this machine's own name "
    "resolves to. Muster gives Gloo a better one, but programs that are started otherwise, or that "
    "look up the name themselves, wait for each other and time out.";

bool IsOwn(const Names& names, const std::string& address) {
  return std::find(names.own.begin(), names.own.end(), address) != names.own.end();
}

void JudgeOwnName(const Names& names, Report& report) {
  const auto add = [&](Severity severity, const std::string& what, const std::string& remedy) {
    report.Add(severity, "names", what, kWhyNames, remedy);
  };
  // The same words on every host, so that identical findings are merged.
  if (names.addresses.empty()) {
    return add(
        Severity::kWarning,
        absl::StrCat("this machine's own name does not resolve (", names.trouble, ")."),
        "Add it to DNS, or to /etc/hosts with the address that others reach it at (`ip addr`).");
  }
  const std::string leads = base::ShortList(names.addresses);
  if (std::any_of(names.addresses.begin(), names.addresses.end(),
                  [&](const std::string& one) { return IsOwn(names, one); })) {
    report.fine.push_back({"names", absl::StrCat(names.host_name, " leads to ", leads)});
    return;
  }
  if (std::all_of(names.addresses.begin(), names.addresses.end(), rendezvous::IsLoopbackLiteral)) {
    return add(Severity::kWarning,
               absl::StrCat("this machine's own name resolves to ", leads,
                            ", which only this machine can reach."),
               "Remove the name from that address's line in /etc/hosts, and add it to the line of "
               "the address that others reach this machine at (`ip addr`).");
  }
  add(Severity::kError,
      absl::StrCat("this machine's own name, ", names.host_name, ", resolves to ", leads,
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
    report.Add(
        Severity::kWarning, "names",
        absl::StrCat("to look up this machine's own name took ", base::Seconds(names.took), "."),
        "Every worker looks up names as it starts, and again after each restart.",
        "Find out which name server in /etc/resolv.conf does not answer and remove it, "
        "or list the hosts of the job in /etc/hosts.");
  }
  if (!names.has_localhost) {
    report.Add(
        Severity::kWarning, "names", "localhost does not resolve.",
        "Programs that use it for this machine cannot connect; Muster itself uses 127.0.0.1.",
        "Add the line \"127.0.0.1 localhost\" to /etc/hosts.");
  }
  if (names.own.empty()) {
    report.Add(Severity::kNote, "names", "no network interface other than loopback has an address.",
               "Only jobs on this machine alone can run; no other machine can take part.",
               "Bring an interface up, or give the container a network.");
  }
}

namespace {

const char* RemedyFor(DialOutcome outcome) {
  switch (outcome) {
    case DialOutcome::kRefused:
      return "Check on that machine that musterd is running, and on which address and port it "
             "listens (`ss -ltnp`); a firewall that rejects looks the same.";
    case DialOutcome::kSilent:
      return "Check that the machine is up, and that its firewall, and those on the path, allow "
             "TCP to that port.";
    case DialOutcome::kNoRoute:
      return "Run `ip route get` with that address: a route, a gateway or an interface is missing.";
    case DialOutcome::kConnected:
    case DialOutcome::kFailed:
      break;
  }
  return "Check that the address is correct.";
}

// The same limits as between hosts (link_measurement.cc).
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
  report.Add(off >= kClockFarOff ? Severity::kError : Severity::kWarning, "clock",
             absl::StrCat("this machine's clock is ", base::Seconds(off),
                          clock.ahead.count() > 0 ? " behind" : " ahead of",
                          " that of the rendezvous at ", where, "."),
             "Logs and event logs of several machines show events in the wrong order; "
             "certificates are refused once it is far off, and make sees files from the future.",
             "Run chrony or systemd-timesyncd on both, and see `timedatectl` for which clock "
             "is wrong.");
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
    return report.Add(
        Severity::kError, "rendezvous",
        absl::StrCat("the name of the rendezvous, ", reach.endpoint.host, ", does not resolve (",
                     reach.resolved.trouble, ")."),
        "No node of this machine can join the job.",
        "Correct the name, add it to DNS or /etc/hosts, or give the address instead.");
  }
  if (reach.leads_to_loopback) {
    report.Add(
        Severity::kWarning, "rendezvous",
        absl::StrCat(reach.endpoint.host, " leads to ", base::ShortList(reach.resolved.addresses),
                     " here, which only this machine can reach."),
        "Other machines resolve the name to another address, and workers here would get this one.",
        "Remove the name from that address's line in /etc/hosts, and add it to the line of the "
        "address that others reach this machine at.");
  }
  if (reach.outcome != DialOutcome::kConnected) {
    return report.Add(
        Severity::kError, "rendezvous",
        absl::StrCat("no connection to ", where, " (", reach.dialled, "): ", reach.cause, "."),
        "No node of this machine can join the job.", RemedyFor(reach.outcome));
  }
  if (!reach.answer_trouble.empty()) {
    return report.Add(
        Severity::kError, "rendezvous",
        absl::StrCat("there is a connection to ", where, ", but no answer: ", reach.answer_trouble,
                     "."),
        "No node of this machine can join the job.",
        "Check that it is a musterd, that both ends have the same token (--token-file), "
        "certificates of one authority (--tls-ca) or --insecure, and that both clocks are right.");
  }
  if (reach.clock) JudgeClock(*reach.clock, where, report);
  report.fine.push_back(
      {"rendezvous",
       absl::StrFormat("%s (%s) answers, %.1f ms away", where, reach.dialled,
                       std::chrono::duration<double, std::milli>(reach.took).count())});
}

}  // namespace muster::launcher
