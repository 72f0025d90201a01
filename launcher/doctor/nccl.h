// Checks NCCL's and Gloo's environment variables against this machine's devices.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/doctor/report.h"
#include "launcher/machine/environment.h"

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

// Whether NCCL_SOCKET_IFNAME or NCCL_IB_HCA selects `name`. "eth,ib" are prefixes, "=eth0" is an
// exact name, and "^docker" or "^=eth0" exclude; a port may follow a colon (NCCL,
// src/misc/utils.cc, parseStringList and matchIfList).
bool IsMeant(absl::string_view list, absl::string_view name, int port);

// `has_peers`: the job spans several machines.
void Judge(const Networks& networks, const Environment& environment, bool has_peers,
           Report& report);

}  // namespace muster::launcher
