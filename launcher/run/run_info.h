// What is known of one `muster run` on this machine, for `muster ps` and for other runs.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::launcher {

// What a run is doing, for whoever watches it.

enum class RunState {
  kWaiting,     // for other nodes
  kRunning,     // its workers run
  kRestarting,  // the workers stop, to start again
  kStopping,
};

// "waiting", "running", "restarting" or "stopping".
absl::string_view ToString(RunState state);

struct RunDevice {
  std::string name;  // as the user or CUDA_VISIBLE_DEVICES names it: "4"
  std::string uuid;  // the whole one (CanonicalDevice() in devices.h); empty when unknown

  bool operator==(const RunDevice&) const = default;
};

struct RunInfo {
  std::string run_id;
  // The launcher's, in the PID namespace that it ran in.
  int pid = 0;
  std::string script;
  // GPUs its workers may use; empty: none, or not known.
  std::vector<RunDevice> devices;
  std::string ranks;  // "0-3 of 8"; empty while it has none
  RunState state = RunState::kWaiting;
  // When the run began, by this machine's clock, in whole seconds.
  std::chrono::sys_seconds since;
  std::string log_dir;  // where logs go, if there are any; empty: nowhere
  int node_rank = -1;   // -1 while it has none
  int nproc = 1;
  // It is the node of a host, started by `muster run --hosts`, with which it ends.
  bool launched = false;
  // Whose machine it is on, where several were asked; else empty.
  std::string host;

  bool operator==(const RunInfo&) const = default;
};

// A JSON object with these names as keys; `since` is "2026-11-21T03:40:37Z", a missing rank is
// null. Bytes that are not UTF-8 become U+FFFD.
std::string WriteRunInfo(const RunInfo& info);

// Reads it back, with the keys in any order. Unknown keys are ignored and missing ones keep their
// defaults, so that different versions of Muster can share a machine. nullopt when it is not such
// an object.
std::optional<RunInfo> ReadRunInfo(absl::string_view json);

// A JSON array of them, for programs; each has a `host` only if it is set.
std::string WriteRunInfos(const std::vector<RunInfo>& runs);

// Reads it back, without `host`, which is for who asked to say. nullopt when it is not such an
// array.
std::optional<std::vector<RunInfo>> ReadRunInfos(absl::string_view json);

// One sentence for each device in `devices` that one of `runs` also has: "device 4 is also used by
// run 'x' (pid 17, train.py)". Devices are the same if their UUIDs are, or, where a UUID is not
// known, their names.
std::vector<std::string> DeviceConflicts(const std::vector<RunInfo>& runs,
                                         const std::vector<RunDevice>& devices);

// The runs of this machine as a table for people.

// A line of headings and one for each run, in aligned columns two blanks apart:
//   RUN  PID  NODE  DEVICES  RANKS  STATE  SINCE  LOGS  SCRIPT
// and HOST before it where one is set.
// "-" stands for what a run does not have; UUIDs are cut to their first block. Times are shown in
// `zone`. Control characters are shown as '?'.
std::string RunTable(const std::vector<RunInfo>& runs, absl::TimeZone zone);

}  // namespace muster::launcher
