// The command line of what asks a rendezvous: `muster status` and `muster kv`.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/environment.h"
#include "rendezvous/net/endpoint.h"

namespace muster::launcher {

struct RendezvousArgs {
  // --help or -h is among them; then nothing else is set.
  bool help = false;
  rendezvous::Endpoint endpoint;
  // Empty: not given.
  std::string run_id;
  bool json = false;
  std::optional<std::chrono::milliseconds> timeout;
  // What is no flag, in order.
  std::vector<std::string> operands;
};

// What a command takes beside --rdzv-endpoint, --rdzv-id and --help.
struct RendezvousArgsTaken {
  bool json = false;
  bool timeout = false;
};

// Reads the arguments behind the command. Flags and operands may come in any order; all behind "--"
// are operands, as is "-5". Where a flag is not given, the environment of a job's worker says it
// (MUSTER_RDZV_ENDPOINT, TORCHELASTIC_RUN_ID), else that of `muster run` (PET_RDZV_ENDPOINT,
// PET_RDZV_ID). An error's message is a sentence for the user.
//
// Not by CLI11 (2.1.2): that one takes a value such as "[a,b]" apart.
absl::StatusOr<RendezvousArgs> ParseRendezvousArgs(const std::vector<std::string>& args,
                                                   const RendezvousArgsTaken& taken,
                                                   const Environment& environment);

}  // namespace muster::launcher
