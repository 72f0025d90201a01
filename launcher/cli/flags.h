// The command lines of `muster run` and `muster launch`.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "launcher/cli/flag_table.h"
#include "launcher/cli/hosts_run.h"
#include "launcher/cli/launch_config.h"
#include "launcher/cli/slurm.h"
#include "launcher/machine/environment.h"
#include "launcher/machine/nproc.h"

namespace muster::launcher {

// The user's mistake in one sentence: what was given, why it is wrong, what to do. For stderr; exit
// code 2.
struct UsageError {
  std::string sentence;
};

// Text that the user asked for. For stdout; exit code 0.
struct TextRequest {
  std::string text;
};

// HostsRun: the job is started on other hosts from here. SlurmStep: Slurm starts it on its nodes.
// Shell: its completion script is asked for.
using ParsedRun =
    std::variant<LaunchConfig, HostsRun, SlurmStep, UsageError, TextRequest, base::Shell>;

// Reads the arguments that follow `muster run`, or those of another dialect. Apart from what is
// passed in, it looks at the files that the command names, and may draw a random run id
// (meeting.h).
ParsedRun ParseRun(const std::vector<std::string>& args, Dialect dialect,
                   const Environment& environment, const Machine& machine);

}  // namespace muster::launcher
