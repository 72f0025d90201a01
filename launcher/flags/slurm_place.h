// Where Slurm has put this process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/environment.h"

namespace muster::launcher {

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

}  // namespace muster::launcher
