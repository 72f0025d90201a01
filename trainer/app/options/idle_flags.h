// Finds flags that were given but have no effect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/app/options/options.h"

namespace muster::trainer {

// Facts about a run known before its first step, other than from its flags.
struct RunFacts {
  int ranks = 1;
  int data_ranks = 1;  // ranks that share a batch
  bool gpu = false;
  bool has_batch_norm = false;  // the model
  std::size_t stages = 1;       // of the model
  std::int64_t steps = 0;       // total, when the training ends
};

// The command line, apart from the meaning of its flags: those that it names, and their spelling,
// "--flip" as "--no-flip", for example.
using CommandLine = std::map<std::string, std::string>;

CommandLine ReadCommandLine(int argc, const char* const* argv);

// A sentence for each flag that was given and has no effect, because of what another flag, the
// model, the data or the run is: "--momentum has no effect with --algorithm adamw". A flag counts
// as given if `line` names it, or a file sets it to something other than its default: the file of
// an earlier run contains all flags. In the order of --help. Not an error: scripts often pass a
// fixed set of flags.
std::vector<std::string> FlagsWithoutEffect(const Options& options, const CommandLine& line,
                                            const RunFacts& run);

}  // namespace muster::trainer
