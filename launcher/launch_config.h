// What the user asked for, checked and complete: made once from the command line and the
// environment (flags.h), read-only afterwards, and all that the launcher knows of either.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launcher/redirects.h"
#include "rendezvous/endpoint.h"

namespace muster::launcher {

// Where the nodes of the job meet.
enum class RendezvousMode {
  // In this process, without any network: a job of one node whose ports nobody chose.
  kStandalone,
  // At `endpoint`: a musterd that runs there, or else the node that owns the address serves it.
  kEndpoint,
  // torchrun's static rendezvous. With one node: in this process, and `endpoint` is the workers'
  // MASTER_ADDR and MASTER_PORT exactly. With several: node rank 0 serves `endpoint`, and node
  // ranks are the users' to choose.
  kStatic,
};

enum class ExitCodePolicy {
  kTorchrun,  // 1 when a worker failed
  kWorker,    // the first failed worker's own code, 128+n for a signal
};

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// How long the parts of a rendezvous may take (--rdzv-conf). All above zero.
struct RendezvousTimeouts {
  // How long a round may gather before the job gives up.
  std::chrono::milliseconds join = std::chrono::seconds(600);
  // How long a round that has its minimum waits for more nodes.
  std::chrono::milliseconds last_call = std::chrono::seconds(5);
  // A node that is silent for this long is lost.
  std::chrono::milliseconds lease = std::chrono::seconds(5);
  // How often an agent says that it is alive; shorter than `lease`.
  std::chrono::milliseconds keep_alive_interval = std::chrono::seconds(1);
  // How long an agent tries to reach the endpoint.
  std::chrono::milliseconds connect = std::chrono::seconds(60);

  bool operator==(const RendezvousTimeouts&) const = default;
};

// What each worker runs.
struct Program {
  // The name that people know it by: the script or module as the user gave it.
  std::string name;
  // The command, interpreter included. The first is a path, or the name in PYTHON_EXEC;
  // `${local_rank}` in the others is replaced for each worker.
  std::vector<std::string> argv;

  bool operator==(const Program&) const = default;
};

struct LaunchConfig {
  Program program;

  int min_nodes = 1;
  int max_nodes = 1;
  int nproc_per_node = 1;
  // The place in rank order that the user, or else the scheduler of a job with several nodes, gave
  // this node. A wish, except with kStatic and several nodes: there it is always set, and it is the
  // rank.
  std::optional<int> node_rank;
  std::string role = "default";

  RendezvousMode mode = RendezvousMode::kStandalone;
  // Meaningless with kStandalone.
  rendezvous::Endpoint endpoint;
  // Matches [A-Za-z0-9][A-Za-z0-9._-]{0,63}, as `role` does: both become file names and keys.
  std::string run_id;
  RendezvousTimeouts timeouts;
  // The address this node tells the others; empty: found from the connection to the endpoint.
  std::string local_addr;

  int max_restarts = 0;
  // From the signal that asks a worker to stop, to SIGKILL.
  std::chrono::milliseconds shutdown_timeout = std::chrono::seconds(30);
  ExitCodePolicy exit_code = ExitCodePolicy::kTorchrun;

  // Where logs go; empty: a fresh directory in TMPDIR; "/dev/null": nowhere.
  std::string log_dir;
  // Streams that go to a file, and streams that go to a file and to the console.
  Redirects redirects;
  Redirects tee;
  LogLevel log_level = LogLevel::kWarning;

  bool operator==(const LaunchConfig&) const = default;
};

}  // namespace muster::launcher
