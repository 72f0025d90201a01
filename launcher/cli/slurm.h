// What the command line leaves open, in a job of Slurm's.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "launcher/cli/flag_table.h"
#include "launcher/machine/environment.h"

namespace muster::launcher {

// Where the user has not said where nodes meet, and which there are, Slurm has:
//   in a step of several hosts   as many nodes, which meet at the first host, at a port that
//   follows
//                                from the step's number; the step's name is the run id
//                                and all are needed, unless --nnodes=MIN:MAX says less
//   in a step                    as many workers as the host has GPUs of the job, less what
//                                CUDA_VISIBLE_DEVICES and its like or --devices leave out
//   in an allocation             the job is started on its hosts as a step; with --launch-with,
//   from
//                                here, as with --hosts
// A job of one node, typed on that node, stays as it is. An error's message is a sentence for the
// user.
absl::Status FollowSlurm(const Environment& environment, RunFlags& flags);

// Where Slurm has put this process.

// Slurm says it in variables (srun(1), "OUTPUT ENVIRONMENT VARIABLES", and the same in sbatch(1)
// and salloc(1)). MUSTER_SLURM=0 has them ignored.
struct SlurmPlace {
  // srun has started this process, and its like on each of the hosts. False: this is the batch
  // script, or the shell of salloc, and nothing runs on the other hosts yet.
  bool is_step = false;
  // Of the step, or of the allocation; never none.
  std::vector<std::string> hosts;
  // This machine is one of them. A shell of salloc's may be elsewhere.
  bool is_on_host = false;
  // A name that nothing else in the cluster has: "1234.0" for a step, "1234" for an allocation, and
  // "1234.0-r1" once the job has been requeued: what came before is over.
  std::string name;
  // GPUs of the job on a host; unset: none were asked for.
  std::optional<int> gpus;
  // This is the first host of the step.
  bool is_first_host = false;
  // Of a step: the most processes that it has on a host.
  int tasks_of_host = 1;
};

// Nothing where Slurm is not at work. An error's message is a sentence: what Slurm says makes no
// sense.
absl::StatusOr<std::optional<SlurmPlace>> FindSlurmPlace(const Environment& environment);

// A run on all nodes of a Slurm allocation, as one step that is still to be started: made once from
// the command line and the environment, read-only afterwards.

struct SlurmStep {
  int nodes = 1;
  // "run" or "launch", and all that followed it on the command line: in the step it is read again,
  // with what Slurm says there.
  std::string dialect;
  std::vector<std::string> args;
  // NAME=VALUE for workers, which they would not have from here otherwise.
  std::vector<std::string> environment;
  // Nodes prove a token to each other that is made for this step. Otherwise they need none, or the
  // user has said which.
  bool makes_token = false;
  // What asks for its end (--signals-to-handle).
  std::vector<int> stop_signals;
  // What the other nodes have to end in once one has ended, by itself or not: the job needs all of
  // them, and Slurm brings none back. 0: without limit.
  std::chrono::seconds end_limit{0};
};

// The command that starts Muster on all nodes of a Slurm allocation at once.

// The descriptor of the agents from which they read orders.
inline constexpr int kOrdersFd = 4;

// One step, with one process on each node, beside whatever else the job runs there: `program` as it
// is here, else what PATH has; where there is neither, one line on stderr says so and the exit code
// is 127. Srun's standard input, which all its processes get, begins with a line for the token,
// empty where none is made; what follows is there on kOrdersFd.
std::vector<std::string> SrunCommand(const SlurmStep& step, const std::string& program);

// A script for sbatch that runs a job.

// `flags` are sbatch's, as they would be typed; `program` is this program's path, and `run` what
// follows `muster run`. One process is started on each node, which is what muster wants of srun.
// InvalidArgument, one sentence, where `flags` hold something that is no flag: it would be taken
// for a comment.
absl::StatusOr<std::string> BatchScript(const std::vector<std::string>& flags,
                                        const std::string& program,
                                        const std::vector<std::string>& run);

}  // namespace muster::launcher
