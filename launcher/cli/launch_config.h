// What the user asked for, checked and complete: made once from the command line and the
// environment (flags.h), read-only afterwards, and all that the launcher knows about them.
#pragma once

#include <chrono>
#include <csignal>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "launcher/machine/environment.h"
#include "launcher/machine/numa.h"
#include "rendezvous/core/values/types.h"
#include "rendezvous/identity/token_source.h"
#include "rendezvous/net/endpoint.h"
#include "worker/worker_spec.h"

namespace muster::launcher {

// A range of exit codes, as users write it: "70-79".

// Exit codes from `first` to `last`.
struct ExitCodeRange {
  int first = 0;
  int last = 0;

  bool operator==(const ExitCodeRange&) const = default;
};

// Which of a worker's output streams a flag such as --redirects or --tee chooses, for each local
// rank.

// torchrun's numbers: a set of streams as two bits.
enum class Streams { kNone = 0, kStdout = 1, kStderr = 2, kBoth = 3 };

inline bool HasStdout(Streams streams) {
  return (static_cast<int>(streams) & 1) != 0;
}
inline bool HasStderr(Streams streams) {
  return (static_cast<int>(streams) & 2) != 0;
}

struct Redirects {
  // For local ranks that `by_local_rank` does not name.
  Streams all = Streams::kNone;
  std::map<int, Streams> by_local_rank;

  Streams For(int local_rank) const {
    const auto found = by_local_rank.find(local_rank);
    return found == by_local_rank.end() ? all : found->second;
  }

  bool operator==(const Redirects&) const = default;
};

// Reads `3` (every local rank) or `0:3,12:1` (those local ranks; the others nothing). Unlike
// torchrun's, a local rank may have several digits. An error's message is a phrase that follows the
// text it is about.
absl::StatusOr<Redirects> ParseRedirects(absl::string_view text);

// Where the nodes of the job meet.
enum class RendezvousMode {
  // In this process, without any network: a job of one node, without chosen ports.
  kStandalone,
  // At `endpoint`: in a musterd that runs there, or else in the agent of the node that owns the
  // address.
  kEndpoint,
  // In this process, as kStandalone, but `endpoint` is the workers' MASTER_ADDR and MASTER_PORT
  // exactly: torchrun's static rendezvous of one node.
  kFixedPort,
  // torchrun's static rendezvous of several nodes: node rank 0 serves `endpoint`, and each node
  // brings its rank.
  kStatic,
};

enum class ExitCodePolicy {
  kTorchrun,  // 1 when a worker failed
  kWorker,    // the first failed worker's own code, 128+n for a signal
};

// Who serves the store through which the workers find each other.
enum class WorkerStore {
  kAgent,   // the agent of group rank 0, fresh for each round
  kWorker,  // the worker with rank 0 (PyTorch builds without libuv can do no other)
  // As kAgent, and only agents can reach it from other nodes: each serves it to its own workers on
  // loopback. Only where there is a network between nodes (kEndpoint, kStatic), and credentials.
  kTunnel,
};

// The value of --log-dir that turns logs off, as with torchrun.
inline constexpr char kNoLogs[] = "/dev/null";

// What the user wants from this command.
enum class Purpose {
  kRun,
  kDryRun,       // to see what each worker would get
  kPrintConfig,  // to see how the command line was understood
};

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// How long the steps of a rendezvous may take (--rdzv-conf). All above zero.
struct RendezvousTimeouts {
  // How long a round may gather before the job gives up.
  std::chrono::milliseconds join = std::chrono::seconds(600);
  // How long a round that has its minimum waits for more nodes.
  std::chrono::milliseconds last_call = std::chrono::seconds(5);
  // A node that is silent for this long is lost.
  std::chrono::milliseconds lease = std::chrono::seconds(3);
  // How often an agent says that it is alive; shorter than `lease`.
  std::chrono::milliseconds keep_alive_interval = std::chrono::seconds(1);
  // How long an agent tries to reach the endpoint.
  std::chrono::milliseconds connect = std::chrono::seconds(60);
  // How long an agent whose connection broke tries to come back.
  std::chrono::milliseconds reconnect = std::chrono::seconds(600);

  bool operator==(const RendezvousTimeouts&) const = default;
};

// What is done about a worker that gives no sign of life (--hang-timeout).
enum class HangAction {
  kRestart,  // it is killed, which is a failure like any other
  kEnd,      // it is killed, and the job is not restarted
  kReport,   // evidence is collected, and the job continues
};

struct HangPolicy {
  // The longest silence after a sign of life; zero: workers are not watched.
  std::chrono::milliseconds timeout{0};
  // The longest silence before the first; zero: for ever.
  std::chrono::milliseconds first_beat_timeout{0};
  // Output is a sign of life, too.
  bool output_counts = false;
  HangAction action = HangAction::kRestart;
  // The command that shows a process's stacks, with {pid} in it; empty: one that is installed.
  std::string stack_command;

  bool operator==(const HangPolicy&) const = default;
};

// What must hold before this node joins a round (--health-check).
struct HealthPolicy {
  std::string command;  // for /bin/sh; empty: nothing is checked
  std::chrono::milliseconds timeout = std::chrono::seconds(30);

  bool operator==(const HealthPolicy&) const = default;
};

// What each worker runs.
struct Program {
  // The name that people know it by: the script or module as the user gave it.
  std::string name;
  // The command, interpreter included. The first is a path, or the name in PYTHON_EXEC;
  // `${local_rank}` in the others is replaced for each worker.
  std::vector<std::string> argv;
  // What the user should know about it, one sentence; usually empty.
  std::string note = {};

  bool operator==(const Program&) const = default;
};

// What can be given of a launch as it is, or else its default. What is always worked out, from
// other flags, the environment or the machine, is LaunchConfig's.
struct LaunchOptions {
  Purpose purpose = Purpose::kRun;

  int min_nodes = 1;
  int max_nodes = 1;
  // The place in rank order that the user gave this node, or else the scheduler, for a job with
  // several nodes and no topology. It is a wish, except with kStatic: there it is always set, and
  // it is the rank.
  std::optional<int> node_rank;
  // Where this node is, in labels separated by slashes, the outermost first; empty: not known.
  std::string topology;
  std::string role = "default";
  // Each worker sees only its own device, as device 0, and LOCAL_RANK is 0.
  bool virtual_local_rank = false;
  // Which CPUs each worker may run on; empty: those of this process.
  std::optional<NumaMode> numa_binding;

  // A name (rendezvous/core/values/phrases.h), as `role` is if that is not empty.
  std::string run_id;
  RendezvousTimeouts timeouts;
  // With kEndpoint: whether this node hosts the rendezvous, if the user says so (--rdzv-conf
  // is_host); otherwise the owner of the endpoint's address does.
  std::optional<bool> is_host;
  // Nothing but the daemon's own machine refuses connections to it (--rdzv-conf trust_refusals): a
  // refusal is then as good as the daemon's word. Elsewhere it is silence.
  bool trust_refusals = false;
  // Where the token is that all of the job prove to each other (kEndpoint, kStatic).
  rendezvous::TokenSource token;
  // The address this node tells the others; empty: found from the connection to the endpoint.
  std::string local_addr;

  int max_restarts = 0;
  rendezvous::RestartPolicy restart;
  rendezvous::ScaleUp scale_up = rendezvous::ScaleUp::kNow;
  // A worker that exits with one of these is not followed by a restart.
  std::vector<ExitCodeRange> final_exit_codes;
  // A failure that every start would repeat (failure_report.h) is followed by one all the
  // same.
  bool retry_usage_errors = false;
  HangPolicy hang;
  // By which share a rank's own time of a step is longer than the median's if it is a straggler; 0:
  // none ever is.
  double straggler_threshold = 0.3;
  HealthPolicy health;
  // How often, at most, a node of Slurm's asks whether it is being drained; zero: never.
  std::chrono::milliseconds drain_interval = std::chrono::seconds(60);
  // Where this agent answers whoever asks whether it is healthy (run_status.h), if it
  // does.
  std::optional<rendezvous::Endpoint> health_endpoint;
  // Where it shows the job over HTTP if it hosts the rendezvous (run_status.h), if it does.
  std::optional<rendezvous::Endpoint> http;
  // Signals to the agent that end the run: each is passed on to the workers, who then have
  // `shutdown_timeout`.
  std::vector<int> stop_signals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  // From the signal that asks a worker to stop, to SIGKILL; milliseconds::max(): never.
  std::chrono::milliseconds shutdown_timeout = std::chrono::seconds(30);
  // Of processes that workers have left running when all have succeeded.
  worker::LeftoverPolicy leftovers = worker::LeftoverPolicy::kWait;
  ExitCodePolicy exit_code = ExitCodePolicy::kTorchrun;

  // Where logs go; empty: a fresh directory in the temporary one; kNoLogs: nowhere.
  std::string log_dir;
  // Streams that go to a file, and streams that go to a file and to the console.
  Redirects redirects;
  Redirects tee;
  // Local ranks whose output the console shows; empty: all.
  std::vector<int> local_ranks_filter;
  // Tee'd lines that contain one of these also go to filtered_stdout.log and filtered_stderr.log.
  std::vector<std::string> stdout_filters;
  std::vector<std::string> stderr_filters;
  // Lines on the console have the prefix of tee'd ones, whether they are or not.
  bool prefix_lines = false;
  // The prefix of a tee'd line, with ${macros}; empty: "[<role><local rank>]:".
  std::string prefix_template;
  // The file for events; empty: none.
  std::string event_log;
  LogLevel log_level = LogLevel::kWarning;
  // The run goes on without the terminal in which it was typed.
  bool detach = false;
  // The report that all nodes have alike is shown here; otherwise another node shows it in the same
  // place.
  bool shows_shared_report = true;
  // What the user should know before the workers start, one sentence each.
  std::vector<std::string> notes;

  // The user wants files with output.
  bool asks_for_logs() const {
    return redirects != Redirects{} || tee != Redirects{} || !stdout_filters.empty() ||
           !stderr_filters.empty();
  }
  // Something depends on workers' beats; else they are only shown.
  bool needs_beats() const { return hang.timeout.count() > 0 || restart.no_progress_limit > 0; }

  bool operator==(const LaunchOptions&) const = default;
};

struct LaunchConfig : LaunchOptions {
  Program program;
  int nproc_per_node = 1;
  // What CUDA_VISIBLE_DEVICES is to say for the workers together (--devices); empty: as inherited.
  std::vector<std::string> devices;
  RendezvousMode mode = RendezvousMode::kStandalone;
  // Meaningless with kStandalone.
  rendezvous::Endpoint endpoint;
  WorkerStore worker_store = WorkerStore::kAgent;

  bool operator==(const LaunchConfig&) const = default;
};

// The words that users write for values of LaunchConfig, and see when values are shown.

template <typename Value>
struct Word {
  const char* word;
  Value value;
};

inline constexpr Word<RendezvousMode> kRendezvousModes[] = {
    {"standalone", RendezvousMode::kStandalone},
    {"endpoint", RendezvousMode::kEndpoint},
    {"fixed-port", RendezvousMode::kFixedPort},
    {"static", RendezvousMode::kStatic}};

inline constexpr Word<NumaMode> kNumaModes[] = {{"node", NumaMode::kNode},
                                                {"socket", NumaMode::kSocket},
                                                {"exclusive", NumaMode::kExclusive},
                                                {"core-complex", NumaMode::kCoreComplex}};

inline constexpr Word<WorkerStore> kWorkerStores[] = {{"agent", WorkerStore::kAgent},
                                                      {"worker", WorkerStore::kWorker},
                                                      {"tunnel", WorkerStore::kTunnel}};

inline constexpr Word<rendezvous::ScaleUp> kScaleUps[] = {
    {"now", rendezvous::ScaleUp::kNow}, {"next-restart", rendezvous::ScaleUp::kNextRestart}};

// Whether output counts as a sign of life (HangPolicy::output_counts).
inline constexpr Word<bool> kHangSigns[] = {{"beats", false}, {"output", true}};

inline constexpr Word<HangAction> kHangActions[] = {
    {"restart", HangAction::kRestart}, {"end", HangAction::kEnd}, {"report", HangAction::kReport}};

inline constexpr Word<ExitCodePolicy> kExitCodePolicies[] = {
    {"torchrun", ExitCodePolicy::kTorchrun}, {"worker", ExitCodePolicy::kWorker}};

inline constexpr Word<worker::LeftoverPolicy> kLeftoverPolicies[] = {
    {"wait", worker::LeftoverPolicy::kWait},
    {"stop", worker::LeftoverPolicy::kStop},
    {"keep", worker::LeftoverPolicy::kKeep}};

inline constexpr Word<LogLevel> kLogLevels[] = {{"debug", LogLevel::kDebug},
                                                {"info", LogLevel::kInfo},
                                                {"warning", LogLevel::kWarning},
                                                {"error", LogLevel::kError}};

// The word for `value`; empty when `words` has none.
template <typename Value, std::size_t size>
constexpr const char* WordFor(const Word<Value> (&words)[size], Value value) {
  for (const Word<Value>& word : words) {
    if (word.value == value) return word.word;
  }
  return "";
}

// The prefix of each line of a worker on the console (--log-line-prefix-template).

// Replaces $name and ${name} by `values`, and $$ by $, as Python's string.Template.safe_substitute
// does: a name that is not in `values` is kept, in its ${name} form. So ${pid} and ${time}, which
// are known only later, are left to worker/ (OutputSpec::prefix).
std::string ExpandTemplate(absl::string_view text,
                           const std::map<std::string, std::string>& values);

// What all workers of a node inherit.

// The launcher's own environment with what the user chose for the workers: --devices as
// CUDA_VISIBLE_DEVICES, and a default for OMP_NUM_THREADS and for
// TORCH_NCCL_ASYNC_ERROR_HANDLING.
Environment BaseEnvironment(const LaunchConfig& config, const Environment& own);

// The default of OMP_NUM_THREADS for workers.

struct OmpDefault {
  // For the workers' OMP_NUM_THREADS.
  std::string threads;
  // One line for the user, who may be surprised.
  std::string note;

  bool operator==(const OmpDefault&) const = default;
};

// torchrun's rule: several workers on one node would each start a thread for every CPU and slow
// each other down, so each gets one thread. nullopt with a single worker, or when the variable is
// set, even to an empty value.
std::optional<OmpDefault> DefaultOmpThreads(int nproc, const Environment& environment);

}  // namespace muster::launcher
