// What the command line leaves open, in a job of Slurm's.
#pragma once

#include "absl/status/status.h"
#include "launcher/environment.h"
#include "launcher/flags/run_flags.h"

namespace muster::launcher {

// Where the user has not said where nodes meet, and which there are, Slurm has:
//   in a step of several hosts   as many nodes, which meet at the first host, at a port that
//   follows
//                                from the step's number; the step's name is the run id
//                                and all are needed, unless --nnodes=MIN:MAX says less
//   in a step                    as many workers as the host has GPUs of the job
//   in an allocation             the job is started on its hosts as a step; with --launch-with,
//   from
//                                here, as with --hosts
// A job of one node, typed on that node, stays as it is. An error's message is a sentence for the
// user.
absl::Status FollowSlurm(const Environment& environment, RunFlags& flags);

}  // namespace muster::launcher
