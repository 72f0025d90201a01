// Takes the flags off the front of a command line.
//
// Written here, over the flag table, rather than with CLI11 (2.1.2): CLI11 takes the next argument
// for the value of `--rdzv-conf=` and knows no abbreviations and no two-letter short names.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/environment.h"
#include "launcher/flags/run_flags.h"

namespace muster::launcher {

// Whose command line it is.
enum class Dialect {
  kRun,     // torchrun's
  kLaunch,  // that of python -m torch.distributed.launch
};

struct ScannedArgs {
  RunFlags flags;
  // The script and its arguments, as they are.
  std::vector<std::string> command;
  // The arguments before it that a host of the job is to be given, too (Flag::here_alone).
  std::vector<std::string> passed_on;
};

// Reads `args` (without the program's name) up to the script: the first argument that is not a
// flag, or the one after "--". What follows belongs to the script, however much it looks like one
// of our flags. A flag that is not given is taken from its environment variable; if one is given
// twice, the last counts. An error's message is a sentence for the user.
absl::StatusOr<ScannedArgs> ScanArgs(const std::vector<std::string>& args, Dialect dialect,
                                     const Environment& environment);

}  // namespace muster::launcher
