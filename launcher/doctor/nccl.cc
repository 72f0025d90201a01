#include "launcher/doctor/machine.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/text.h"
#include "worker/process/process_info.h"

namespace muster::launcher {
namespace {

std::string UsableNames(const std::vector<Interface>& interfaces) {
  std::vector<std::string> names;
  for (const Interface& one : interfaces) {
    if (one.is_up && one.has_address) names.push_back(one.name);
  }
  return names.empty() ? "none" : base::ShortList(names);
}

void JudgeNcclInterface(const Networks& networks, const std::string& list, bool has_peers,
                        Report& report) {
  const std::string shown = absl::StrCat("NCCL_SOCKET_IFNAME=", list);
  std::vector<std::string> usable;
  bool is_loopback_alone = true;
  for (const Interface& one : networks.interfaces) {
    if (!one.is_up || !one.has_address || !IsMeant(list, one.name, -1)) continue;
    usable.push_back(one.name);
    is_loopback_alone = is_loopback_alone && one.is_loopback;
  }
  if (usable.empty()) {
    return report.Add(
        Severity::kError, "NCCL",
        absl::StrCat(shown, " matches no interface here that is up and has an address."),
        "NCCL does not start: \"Bootstrap : no socket interface found\".",
        absl::StrCat("Unset it, or name one of this machine's: ", UsableNames(networks.interfaces),
                     ". NAME matches every name that begins with it, =NAME that one only, ^NAME "
                     "all others."));
  }
  if (is_loopback_alone && has_peers) {
    return report.Add(
        Severity::kError, "NCCL", absl::StrCat(shown, " matches loopback only."),
        "Ranks on other machines are given 127.0.0.1: they wait for a reply and time out.",
        absl::StrCat("Name an interface on which the others reach this machine: ",
                     UsableNames(networks.interfaces), "."));
  }
  report.fine.push_back({"NCCL", absl::StrCat(shown, " means ", base::ShortList(usable))});
}

// Gloo takes exact names, and uses all of them in turn.
void JudgeGlooInterface(const Networks& networks, const std::string& list, Report& report) {
  for (const absl::string_view name : absl::StrSplit(list, ',')) {
    const auto found =
        std::find_if(networks.interfaces.begin(), networks.interfaces.end(),
                     [&](const Interface& one) { return one.name == name && one.has_address; });
    if (found != networks.interfaces.end() && found->is_up) continue;
    report.Add(Severity::kError, "Gloo",
               absl::StrCat("GLOO_SOCKET_IFNAME=", list, " names ", name,
                            ", which is not an interface here that is up and has an address."),
               "Gloo does not start: \"Unable to find address for\" that interface.",
               absl::StrCat("Unset it (Muster then chooses one where Gloo would choose wrong), "
                            "or name one of: ",
                            UsableNames(networks.interfaces), "."));
  }
}

bool IsActive(const RdmaPort& port) {
  return absl::StrContains(port.state, "ACTIVE");
}

void JudgeRdma(const Networks& networks, const Environment& environment, Report& report) {
  const std::string list = GetOr(environment, "NCCL_IB_HCA", "");
  const bool is_disabled = GetOr(environment, "NCCL_IB_DISABLE", "0") != "0";
  std::vector<std::string> active;
  for (const RdmaPort& one : networks.rdma) {
    const std::string name = absl::StrCat(one.device, ":", one.port);
    if (!IsMeant(list, one.device, one.port)) continue;
    if (IsActive(one)) {
      active.push_back(name);
    } else {
      report.Add(Severity::kWarning, "NCCL",
                 absl::StrCat("port ", name, " is not active (", one.state, ")."),
                 "NCCL ignores it, and this host is slower than the others or falls back to TCP.",
                 "Check its cable, its switch and the subnet manager: `ibstat`, `ibv_devinfo`.");
    }
  }
  if (!list.empty() && active.empty()) {
    return report.Add(
        Severity::kError, "NCCL",
        absl::StrCat("NCCL_IB_HCA=", list, " matches no active port of an InfiniBand or ",
                     "RoCE device; there ",
                     networks.rdma.empty() ? "is no such device here." : "are others."),
        "NCCL falls back to TCP, many times slower, or fails where the other hosts use "
        "InfiniBand.",
        "Unset it, or name devices of this machine (`ls /sys/class/infiniband`). NAME matches "
        "every name that begins with it, =NAME that one only, ^NAME all others.");
  }
  if (is_disabled && !networks.rdma.empty()) {
    return report.Add(
        Severity::kWarning, "NCCL",
        absl::StrCat("NCCL_IB_DISABLE is set, and there is ", networks.rdma.front().device, "."),
        "NCCL then sends everything over TCP, many times slower.",
        "Unset it, unless that is what you want to try.");
  }
  if (!active.empty()) {
    report.fine.push_back({"NCCL", absl::StrCat("active ports: ", base::ShortList(active))});
  }
}

void JudgeSwitches(const Environment& environment, Report& report) {
  const std::map<std::string, const char*> slow = {
      {"NCCL_P2P_DISABLE", "GPUs of this machine no longer reach one another by NVLink or PCIe."},
      {"NCCL_SHM_DISABLE", "GPUs of this machine talk over the network instead of memory."},
      {"CUDA_LAUNCH_BLOCKING", "The CPU waits for each kernel: a training runs much slower."},
  };
  for (const auto& [name, why] : slow) {
    if (GetOr(environment, name, "0") == "0") continue;
    report.Add(Severity::kWarning, "NCCL",
               absl::StrCat(name, "=", environment.at(name), " is set."), why,
               "Unset it: it is a debugging aid.");
  }
  for (const char* const name : {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING"}) {
    if (GetOr(environment, name, "1") != "0") continue;
    report.Add(
        Severity::kWarning, "NCCL", absl::StrCat(name, "=0 is set."),
        "When a rank is lost, the others wait in their collective forever instead of failing, "
        "and nothing is restarted.",
        "Unset it, or use --hang-timeout.");
  }
  for (const char* const name : {"NCCL_TOPO_FILE", "NCCL_CONF_FILE", "NCCL_GRAPH_FILE"}) {
    const std::string path = GetOr(environment, name, "");
    std::error_code ignored;
    if (path.empty() || std::filesystem::exists(path, ignored)) continue;
    report.Add(
        Severity::kError, "NCCL", absl::StrCat(name, "=", path, ": there is no such file."),
        "NCCL ignores it: it then detects a different topology from the one described, and is "
        "slow.",
        "Correct the path, or unset it.");
  }
}

}  // namespace

bool IsMeant(absl::string_view list, absl::string_view name, int port) {
  const bool all_but = absl::ConsumePrefix(&list, "^");
  const bool exactly = absl::ConsumePrefix(&list, "=");
  if (list.empty()) return true;
  for (const absl::string_view entry : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(entry, absl::MaxSplits(':', 1));
    int wanted = -1;
    if (parts.size() == 2 && !absl::SimpleAtoi(parts[1], &wanted)) wanted = -1;
    if (wanted != -1 && port != -1 && wanted != port) continue;
    if (exactly ? name == parts[0] : absl::StartsWith(name, parts[0])) return !all_but;
  }
  return all_but;
}

Networks ReadNetworks(const std::string& infiniband_dir) {
  Networks networks;
  std::map<std::string, Interface> by_name;
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) == 0) {
    for (const ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
      Interface& interface = by_name[one->ifa_name];
      interface.name = one->ifa_name;
      interface.is_up = (one->ifa_flags & IFF_UP) != 0;
      interface.is_loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;
      const int family = one->ifa_addr == nullptr ? AF_UNSPEC : one->ifa_addr->sa_family;
      interface.has_address = interface.has_address || family == AF_INET || family == AF_INET6;
    }
    ::freeifaddrs(found);
  }
  for (auto& [name, interface] : by_name) networks.interfaces.push_back(std::move(interface));
  std::error_code ignored;
  for (const auto& device : std::filesystem::directory_iterator(infiniband_dir, ignored)) {
    for (const auto& port : std::filesystem::directory_iterator(device.path() / "ports", ignored)) {
      RdmaPort one{.device = device.path().filename().string()};
      if (!absl::SimpleAtoi(port.path().filename().string(), &one.port)) continue;
      one.state = std::string(
          absl::StripAsciiWhitespace(worker::ReadSmallFile((port.path() / "state").string())));
      networks.rdma.push_back(std::move(one));
    }
  }
  std::sort(networks.rdma.begin(), networks.rdma.end(), [](const auto& a, const auto& b) {
    return std::pair(a.device, a.port) < std::pair(b.device, b.port);
  });
  return networks;
}

void Judge(const Networks& networks, const Environment& environment, bool has_peers,
           Report& report) {
  if (const std::string list = GetOr(environment, "NCCL_SOCKET_IFNAME", ""); !list.empty()) {
    JudgeNcclInterface(networks, list, has_peers, report);
  }
  if (const std::string list = GetOr(environment, "GLOO_SOCKET_IFNAME", ""); !list.empty()) {
    JudgeGlooInterface(networks, list, report);
  }
  JudgeRdma(networks, environment, report);
  JudgeSwitches(environment, report);
  report.fine.push_back(
      {"network", absl::StrCat("interfaces with an address: ", UsableNames(networks.interfaces))});
}

}  // namespace muster::launcher
