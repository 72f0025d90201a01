// The command line of the commands that query a rendezvous: `muster status`, `muster top`, `muster
// logs` and `muster kv`.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/cli/command.h"
#include "rendezvous/client/daemon_channel.h"
#include "rendezvous/identity/token_source.h"
#include "rendezvous/net/endpoint.h"

namespace muster::launcher {

struct RendezvousArgs : base::CommandArgs {
  rendezvous::Endpoint endpoint;
  // Empty: not given.
  std::string run_id;
  rendezvous::TokenSource token;

  // Checks what is given, and completes the token. Of a command without verbs, the operand is the
  // job's name.
  absl::Status Complete(base::Variables variables);
};

// Their flags: where the rendezvous is, the job, and what is proved. What is not given is taken
// from the environment of a job's worker, else from that of `muster run`.
absl::Span<const base::Flag> RendezvousToolFlags();

// The rendezvous there, and what this process proves to it: finds the token, or makes it. An error
// is one sentence, and ExitCodeOf() has its exit code.
absl::StatusOr<rendezvous::DaemonOptions> DaemonOf(const rendezvous::Endpoint& endpoint,
                                                   const rendezvous::TokenSource& token);
int ExitCodeOf(const absl::Status& no_daemon);

}  // namespace muster::launcher
