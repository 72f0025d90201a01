// What was said on the command line and in the environment, flag by flag.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "launcher/launch_config.h"

namespace muster::launcher {

// Each part is checked on its own; flags.cc makes a LaunchConfig of it, where the parts must also
// fit together.
struct RunFlags {
  bool help = false;
  bool version = false;

  int min_nodes = 1;
  int max_nodes = 1;
  std::string nproc_per_node = "1";
  std::optional<int> node_rank;
  std::string role = "default";

  bool standalone = false;
  // "c10d", "static", "muster", or empty when not given.
  std::string rdzv_backend;
  std::string rdzv_endpoint;
  std::string rdzv_id;
  std::string master_addr;
  // 0 asks for any free port.
  std::optional<int> master_port;
  std::string local_addr;
  RendezvousTimeouts timeouts;
  // `timeouts.join` was given; static mode has a default of its own.
  bool join_timeout_given = false;

  int max_restarts = 0;
  std::chrono::milliseconds shutdown_timeout = std::chrono::seconds(30);
  ExitCodePolicy exit_code = ExitCodePolicy::kTorchrun;

  bool module = false;
  bool no_python = false;

  std::string log_dir;
  Redirects redirects;
  Redirects tee;
  LogLevel log_level = LogLevel::kWarning;
};

}  // namespace muster::launcher
