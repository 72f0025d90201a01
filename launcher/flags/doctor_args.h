// The command line of `muster doctor`: those flags of `muster run` that say on which machines, and
// with which rendezvous and directories, a job is to run.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/environment.h"
#include "launcher/flags/flag_scanner.h"

namespace muster::launcher {

struct DoctorArgs {
  bool help = false;
  bool json = false;
  // --node, which only the launch tree gives: INDEX@HOST:PORT, that of this host among those asked.
  std::string node;
  // As `muster run` would take them. Its command is `directories`.
  ScannedArgs scanned;
  // Where checkpoints are to go.
  std::vector<std::string> directories;
};

// Reads the arguments after `doctor`, flags and directories in any order. A flag that is not given
// is taken from its environment variable. An error's message is a sentence for the user.
absl::StatusOr<DoctorArgs> ParseDoctorArgs(const std::vector<std::string>& args,
                                           const Environment& environment);

// What its --help prints of the flags: the flag table's text.
std::string DoctorFlagsHelp();

}  // namespace muster::launcher
