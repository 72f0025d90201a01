#include "launcher/commands/doctor_node.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/json.h"
#include "base/print_out.h"
#include "launcher/doctor/names.h"
#include "launcher/doctor/probe.h"
#include "launcher/doctor/report_json.h"
#include "launcher/doctor/way.h"
#include "launcher/machine/local_address.h"
#include "launcher/report/exit_code.h"
#include "rendezvous/net/endpoint.h"

namespace muster::launcher {
namespace {

// How long a measurement by another host is waited for: longer than that host waits for an answer.
constexpr std::chrono::milliseconds kAwaited(4500);

bool Say(const base::Json& json) {
  return base::PrintOut("muster doctor", base::JsonText(json) + "\n");
}

// The numeric address of this machine that `host` means, as the others reach it.
std::string OwnAddress(const std::string& host) {
  const std::vector<std::string> own = InterfaceAddresses();
  for (const std::string& address : Resolve(host).addresses) {
    if (std::find(own.begin(), own.end(), address) != own.end()) return address;
  }
  return own.empty() ? "" : own.front();
}

// Does the part of host `self` in one encounter; nothing, where it has none.
void TakePart(const base::Json& one, int self, int stage, const std::optional<ProbePort>& port) {
  const std::string key = one.value("key", "");
  if (one.value("from", -1) == self) {
    const Way way =
        Probe(one.value("address", ""), static_cast<std::uint16_t>(one.value("port", 0)), key);
    Say({{"stage", stage}, {"way", WayJson(way)}});
  } else if (one.value("to", -1) == self) {
    const Arrival arrival = port ? port->Receive(key, kAwaited) : Arrival();
    Say({{"stage", stage}, {"arrival", ArrivalJson(arrival)}});
  }
}

}  // namespace

int DoctorNode(const std::string& place, Report report) {
  const std::vector<std::string> parts = absl::StrSplit(place, absl::MaxSplits('@', 1));
  int self = -1;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &self)) return kExitBadInput;
  std::optional<ProbePort> port;
  std::string address;
  if (const auto endpoint = rendezvous::ParseEndpoint(parts[1], 0); endpoint.ok()) {
    address = OwnAddress(endpoint->host);
    auto opened = ProbePort::Open(address, endpoint->port);
    if (opened.ok()) port.emplace(*std::move(opened));
  }
  if (!Say({{"report", ReportJson(report)},
            {"address", address},
            {"port", port ? port->port() : 0}})) {
    return kExitNodeFailed;
  }
  // From the connection of the launch tree: what comes is whole lines of JSON by the same program.
  std::string line;
  while (std::getline(std::cin, line)) {
    const base::Json json = base::ParseJson(line);
    if (!json.is_object() || !json.contains("encounters")) continue;
    const int stage = json.value("stage", -1);
    for (const base::Json& one : json["encounters"]) TakePart(one, self, stage, port);
  }
  return kExitSuccess;
}

}  // namespace muster::launcher
