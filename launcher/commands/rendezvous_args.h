// The command line of the commands that query a rendezvous: `muster status`, `muster top`, `muster
// logs` and `muster kv`.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/environment.h"
#include "rendezvous/client/daemon_options.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/token_source.h"

namespace muster::launcher {

struct RendezvousArgs {
  // --help or -h was given; then nothing else is set.
  bool help = false;
  rendezvous::Endpoint endpoint;
  // Empty: not given.
  std::string run_id;
  rendezvous::TokenSource token;
  bool json = false;
  bool watch = false;
  std::optional<std::chrono::milliseconds> timeout;
  // Of the command's own flags, those that were given, by the names in RendezvousArgsTaken.
  std::set<std::string> switches;
  std::map<std::string, std::string> values;
  // The arguments that are not flags, in order; not a job's name.
  std::vector<std::string> operands;
};

// What a command takes besides --rdzv-endpoint, --rdzv-id, the flags for the token, and --help.
struct RendezvousArgsTaken {
  bool json = false;
  bool watch = false;
  bool timeout = false;
  // The job may be named without its flag: JOB is the only operand.
  bool job = false;
  // The command's own flags, without and with a value: "--follow", "--rank".
  std::vector<std::string> switches{};
  std::vector<std::string> values{};
  // Their short names: {"-f", "--follow"}.
  std::map<std::string, std::string> short_names{};
};

// Reads the arguments after the command. Flags and operands may come in any order; everything after
// "--" is an operand, as is "-5". A flag that is not given is taken from the environment of a job's
// worker (MUSTER_RDZV_ENDPOINT, TORCHELASTIC_RUN_ID), else from that of `muster run`
// (PET_RDZV_ENDPOINT, PET_RDZV_ID). An error's message is a sentence for the user.
//
// It does not use CLI11 (2.1.2), which takes a value such as "[a,b]" apart.
absl::StatusOr<RendezvousArgs> ParseRendezvousArgs(const std::vector<std::string>& args,
                                                   const RendezvousArgsTaken& taken,
                                                   const Environment& environment);

// The rendezvous there, and what this process proves to it: finds the token, or makes it. An error
// is the user's mistake, in one sentence.
absl::StatusOr<rendezvous::DaemonOptions> DaemonOf(const rendezvous::Endpoint& endpoint,
                                                   const rendezvous::TokenSource& token);

// What help texts say of the flags for the token.
extern const char kTokenHelp[];

}  // namespace muster::launcher
