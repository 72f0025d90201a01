// The flags of `muster run` and `muster launch`, and what they set.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "base/cli/command.h"
#include "base/cli/readers.h"
#include "launcher/cli/launch_config.h"
#include "launcher/remote/host_list.h"
#include "launcher/remote/link_command.h"

namespace muster::launcher {

// What the command line, PET_ variables and Slurm's allocation say, each part checked on its own.
// Whether they fit together, and what follows from them, flags.cc and meeting.cc decide as they
// make a LaunchConfig.
struct RunFlags : base::CommandArgs {
  LaunchOptions options;

  // Text that is asked for instead of a run.
  bool version = false;
  std::optional<base::Shell> print_completion;

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
  std::chrono::milliseconds ssh_control_persist = kSshControlPersist;
  bool no_copy = false;
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

// Most flags set a field of LaunchOptions (base::Store).
inline LaunchOptions& PartOf(base::CommandArgs& args, LaunchOptions*) {
  return static_cast<RunFlags&>(args).options;
}

using base::Apply;
using base::Check;
using base::Flag;
using base::Problem;
using base::ReadNumber;
using base::ReadNumberAboveZero;
using base::ReadSeconds;
using base::ReadSecondsAboveZero;
using base::ReadSwitch;
using base::ReadText;
using base::ReadWord;
using base::Store;

// The flags of `muster run` and `muster launch`, one row each, with one file per group. A row is
// all there is to a flag that only sets a value: its names, its environment variable, its lines in
// the help text, how its text is read, and the field of LaunchConfig that it sets. A flag that
// affects several fields sets one of RunFlags, and flags.cc derives the rest.

struct FlagGroup {
  absl::string_view heading;
  absl::Span<const Flag> rows;
};

// The groups, in the order of the help text.
FlagGroup NodeFlags();
FlagGroup HostFlags();
FlagGroup RendezvousFlags();
FlagGroup ProgramFlags();
FlagGroup FailureFlags();
FlagGroup OutputFlags();
FlagGroup OtherFlags();

// All of their rows, including those of `launch` alone (Flag::only_for).
absl::Span<const Flag> RunFlagTable();

// Of these flags, those that are named, for a command that takes them as well.
std::vector<Flag> PickRunFlags(absl::Span<const absl::string_view> names);

// Whose command line it is.
enum class Dialect {
  kRun,     // torchrun's
  kLaunch,  // that of python -m torch.distributed.launch
};

// The row of `muster run` or `muster launch`.
base::Command RunRow(Dialect dialect);

// Readers of values, as in base/cli/readers.h.

// A host's name or address, with or without the brackets of an IPv6 address; or empty.
absl::StatusOr<std::string> ReadHost(absl::string_view text);

// A plain name, which errors call `what`: ids and roles become file names and keys on every node.
absl::StatusOr<std::string> ReadName(const char* what, absl::string_view text);

// A command that connects to a host (launcher/remote/link_command.h).
absl::StatusOr<std::string> ReadLaunchWith(absl::string_view text);

// Lists in flags whose entries may contain commas.

// Entries separated by commas; two commas in a row are a comma within an entry, as in torchrun's
// --duplicate-stdout-filters. Empty entries are left out (torchrun keeps them, and every line
// contains an empty text).
std::vector<std::string> SplitFilters(absl::string_view text);

}  // namespace muster::launcher
