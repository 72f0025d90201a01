// One worker: the program, its environment and where its output goes. A plain value, made by the
// launcher and read-only afterwards.
#pragma once

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

namespace muster::worker {

class StreamLog;

// Where one output stream of a worker goes; with neither file nor console, to /dev/null.
struct OutputSpec {
  // A file to append to; created with mode 0600, and missing directories with 0700. Empty: none.
  // Symbolic links are not followed, and only regular files and character devices are accepted.
  std::string file;
  // Also copy it to the agent's stream of the same kind.
  bool to_console = true;
  // Put before each line on the console ("[default0]:") and in the filtered file, never in `file`.
  // ${pid} becomes the worker's pid, ${time} the local time at which the line ended (HH:MM:SS.mmm).
  // With a prefix, lines of different workers never mix; without one, bytes are copied immediately.
  std::string prefix;
  // Lines that contain one of `filters` are appended with the prefix to this file, which several
  // streams may share; it is opened like `file`. Empty: none.
  std::string filtered_file;
  std::vector<std::string> filters;
  // Keep the last kMaxTail bytes in memory for the failure report. That replaces an inherited
  // terminal by a pseudo-terminal, and anything else by a pipe. A stream that is read for another
  // reason keeps its tail anyway.
  bool keep_tail = false;
  // Records the stream so that it can be read back later. Null if nothing records it.
  std::shared_ptr<StreamLog> log{};
};

// The worker's standard input is the agent's.
struct WorkerSpec {
  int rank = 0;
  int local_rank = 0;
  std::string role = "default";
  // Must not be empty. An argv[0] without a slash is looked up in the agent's PATH.
  std::vector<std::string> argv;
  // The environment, "NAME=value" each: the part common to all workers of a node, stored once
  // (null: nothing), and the worker's own. No name may be in both. The group adds MUSTER_AGENT_ID;
  // an existing one belongs in the worker's own part.
  std::shared_ptr<const std::vector<std::string>> common_env;
  std::vector<std::string> env;
  OutputSpec stdout_spec;
  OutputSpec stderr_spec;
  // The CPUs it may run on, in any order; empty: the agent's.
  std::vector<int> cpus;
  // The worker's own directory for its files; the parent directory must exist. It is created just
  // before the worker starts, and removed if the worker succeeded and left it empty. Empty: none.
  std::string directory;
  // The worker's TORCHELASTIC_ERROR_FILE; empty: none. Read only for the failure report.
  std::string error_file;
};

// How workers are asked and then forced to exit: a signal, a grace period, SIGKILL. Only a
// description; GroupLife follows it.

struct StopLadder {
  using Duration = std::chrono::milliseconds;
  // An unlimited grace: SIGKILL is sent only by a Stop() whose ladder kills.
  static constexpr Duration kForever = Duration::max();

  // The first signal, for the workers and the programs that they wait for. SIGKILL means no grace.
  int first_signal = SIGTERM;
  // From the first signal to the SIGKILL for everything that is left of the workers; also from the
  // SIGTERM that a worker's leftovers get after its exit. Zero or less: no grace.
  Duration grace = std::chrono::seconds(30);
  // From SIGKILL until a worker that still runs (hung in the kernel, or held by a debugger) is
  // given up and reported as unkillable.
  Duration give_up = std::chrono::seconds(5);

  // No grace: SIGKILL comes first.
  static StopLadder Now() { return {SIGKILL, Duration::zero()}; }

  bool KillsAtOnce() const { return first_signal == SIGKILL || grace <= Duration::zero(); }

  bool operator==(const StopLadder&) const = default;
};

// What to do with processes that workers left running, once all workers have succeeded. After a
// failure or a stop they are always stopped.

enum class LeftoverPolicy {
  kWait,  // wait for the grace period, then stop them
  kStop,  // stop them at once
  kKeep,  // report them, and let them run
};

}  // namespace muster::worker
