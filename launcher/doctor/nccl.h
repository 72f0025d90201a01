// What NCCL and Gloo are told by the environment, against what this machine has.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/doctor/report.h"
#include "launcher/environment.h"

namespace muster::launcher {

struct Interface {
  std::string name;
  bool is_up = false;
  bool is_loopback = false;
  bool has_address = false;  // an IP address
};

// A port of an InfiniBand or RoCE device.
struct RdmaPort {
  std::string device;  // "mlx5_0"
  int port = 1;
  std::string state;  // "4: ACTIVE", as the kernel writes it
};

struct Networks {
  std::vector<Interface> interfaces;
  std::vector<RdmaPort> rdma;
};

Networks ReadNetworks(const std::string& infiniband_dir = "/sys/class/infiniband");

// NCCL_SOCKET_IFNAME and NCCL_IB_HCA: "eth,ib" names what begins so, "=eth0" exactly that, and
// "^docker" or "^=eth0" all but that; a port may stand behind a colon. Whether `name` is meant
// (NCCL, src/misc/utils.cc, parseStringList and matchIfList).
bool IsMeant(absl::string_view list, absl::string_view name, int port);

// `has_peers`: the job is one of several machines.
void Judge(const Networks& networks, const Environment& environment, bool has_peers,
           Report& report);

}  // namespace muster::launcher
