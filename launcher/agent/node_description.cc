#include "launcher/agent/node_description.h"

#include <unistd.h>

#include <cctype>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/random_name.h"
#include "launcher/config/base_environment.h"
#include "launcher/machine/gloo_interface.h"
#include "launcher/machine/local_address.h"
#include "launcher/machine/numa_binding.h"
#include "worker/env_names.h"

namespace muster::launcher {
namespace {

// Made of characters that names may have.
std::string MakeNodeId(const std::string& host) {
  std::string id = host.substr(0, 40);
  for (char& c : id) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  }
  if (id.empty() || id.front() == '-') id = absl::StrCat("n", id);
  return absl::StrCat(id, "-", getpid(), "-", base::RandomName(6));
}

// The watchdog's FIFO; empty when no watchdog is asked for, as with torchrun.
std::string TimerFile(const Environment& own) {
  if (GetOr(own, "TORCHELASTIC_ENABLE_FILE_TIMER", "0") != "1") return "";
  return GetOr(
      own, worker::env::kTimerFile,
      absl::StrCat(GetOr(own, "TMPDIR", "/tmp"), "/watchdog_timer_", base::RandomName(12)));
}

}  // namespace

rendezvous::NodeInfo DescribeNode(const LaunchConfig& config, const Environment& base,
                                  const std::string& address) {
  rendezvous::NodeInfo node;
  node.host = HostName();
  node.node_id = MakeNodeId(node.host);
  node.address = address;
  // Nobody but this machine, through loopback, comes to a rendezvous of one node.
  if (config.mode != RendezvousMode::kStandalone) node.addresses = InterfaceAddresses();
  node.slots = config.nproc_per_node;
  node.rank_hint = config.node_rank;
  node.topology = absl::StrSplit(config.topology, '/', absl::SkipEmpty());
  node.role = config.role;
  node.devices = absl::StrSplit(GetOr(base, "CUDA_VISIBLE_DEVICES", ""), ',', absl::SkipEmpty());
  node.delivers_logs = true;
  return node;
}

absl::StatusOr<NodeBase> MakeNodeBase(const LaunchConfig& config, const Environment& own,
                                      const Machine& machine) {
  NodeBase base{.environment = BaseEnvironment(config, own),
                .host = HostName(),
                .cpus = {},
                .timer_file = TimerFile(own)};
  if (config.numa_binding) {
    auto cpus = BindWorkersHere(*config.numa_binding, config.nproc_per_node, base.environment,
                                GpusOf(machine).gpus);
    if (!cpus.ok()) return cpus.status();
    base.cpus = *std::move(cpus);
  }
  return base;
}

std::string SetGlooInterface(const LaunchConfig& config, const std::string& address,
                             Environment& base) {
  if (config.max_nodes == 1 || !GetOr(base, worker::env::kGlooSocketIfname, "").empty()) return "";
  // While the endpoint leads nowhere this machine's name stands in for its address. Then it is the
  // endpoint that the user has to hear of.
  const bool known =
      address != HostName() || config.endpoint.host == address || config.local_addr == address;
  if (!known) return "";
  const std::optional<std::string> interface = InterfaceForGloo(HostName(), address);
  if (!interface) return "";
  if (interface->empty()) {
    return absl::StrCat("this machine's name ", HostName(),
                        " resolves to a loopback address only, and Gloo will listen "
                        "there; if the workers use Gloo, set GLOO_SOCKET_IFNAME to an interface "
                        "that other nodes reach");
  }
  base[worker::env::kGlooSocketIfname] = *interface;
  return "";
}

}  // namespace muster::launcher
