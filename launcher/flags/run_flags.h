// What was said on the command line and in the environment, flag by flag.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launcher/config/launch_config.h"

namespace muster::launcher {

// Each part is checked on its own; flags.cc makes a LaunchConfig of it, where the parts must also
// fit together.
struct RunFlags {
  bool help = false;
  bool version = false;
  bool dry_run = false;
  bool print_config = false;
  // The shell, or empty.
  std::string print_completion;

  int min_nodes = 1;
  int max_nodes = 1;
  bool nodes_given = false;
  std::string nproc_per_node = "1";
  bool nproc_given = false;
  // Workers of all nodes together.
  std::optional<int> total_workers;
  std::optional<int> node_rank;
  std::string role = "default";
  std::string devices;
  bool virtual_local_rank = false;
  std::optional<NumaMode> numa_binding;

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
  std::optional<bool> is_host;
  bool trust_refusals = false;
  std::optional<WorkerStore> worker_store;

  int max_restarts = 0;
  rendezvous::RestartPolicy restart;
  rendezvous::ScaleUp scale_up = rendezvous::ScaleUp::kNow;
  std::vector<ExitCodeRange> final_exit_codes;
  HangPolicy hang;
  HealthPolicy health;
  std::chrono::milliseconds shutdown_timeout = std::chrono::seconds(30);
  ExitCodePolicy exit_code = ExitCodePolicy::kTorchrun;
  std::vector<int> stop_signals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

  bool module = false;
  bool no_python = false;
  bool run_path = false;
  // Of `muster launch`: the script gets its local rank from the environment alone, and the flag
  // that it gets else.
  bool use_env = false;
  std::string local_rank_flag = "--local-rank";

  std::string log_dir;
  Redirects redirects;
  Redirects tee;
  std::vector<int> local_ranks_filter;
  std::vector<std::string> stdout_filters;
  std::vector<std::string> stderr_filters;
  std::string prefix_template;
  std::string event_log;
  LogLevel log_level = LogLevel::kWarning;
  std::vector<std::string> notes;
};

}  // namespace muster::launcher
