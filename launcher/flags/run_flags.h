// What the command line and the environment say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/config/launch_config.h"
#include "launcher/hosts/host_list.h"
#include "launcher/hosts/kept_connections.h"

namespace muster::launcher {

// A shell that --print-completion knows.
enum class Shell { kBash, kZsh, kFish };

// Each part has been checked on its own. Most flags set a field of `config`. Those that only affect
// one have a field of their own here, from which flags.cc and meeting.cc derive the rest of
// `config`; there the parts must also fit together.
struct RunFlags {
  LaunchConfig config;

  // Text that is asked for instead of a run.
  bool help = false;
  bool version = false;
  std::optional<Shell> print_completion;

  // --nnodes was given.
  bool nodes_given = false;
  std::string nproc_per_node = "1";
  bool nproc_given = false;
  // Workers of all nodes together.
  std::optional<int> total_workers;
  std::string devices;

  // --hosts, and what goes with it.
  std::vector<Host> hosts;
  std::string hostfile;
  int fanout = 16;
  std::string launch_with;
  std::chrono::milliseconds ssh_persist = kSshPersist;
  bool no_ship = false;
  // NAME or NAME=VALUE.
  std::vector<std::string> exported;

  // Nodes of a Slurm allocation on which the job is to be started as a step; 0: not so.
  int slurm_nodes = 0;

  bool standalone = false;
  // "c10d", "static", "muster", or empty when not given.
  std::string rdzv_backend;
  std::string rdzv_endpoint;
  std::string master_addr;
  // 0 asks for any free port.
  std::optional<int> master_port;
  // A join timeout was given; static mode has its own default.
  bool join_timeout_given = false;
  std::optional<WorkerStore> worker_store;

  bool module = false;
  bool no_python = false;
  bool run_path = false;
  // For `muster launch`: the script gets its local rank only from the environment; otherwise it
  // gets it by this flag.
  bool use_env = false;
  std::string local_rank_flag = "--local-rank";
};

}  // namespace muster::launcher
