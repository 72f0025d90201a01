// Names the job that uses a checkpoint directory.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace muster::trainer {

// A run id does not tell one job from the next of the same name, and a worker that was restarted
// does not know when its job began. So the first workers of a job name it, and leave the name in
// the directories, where those after them find it.

// A name for a job that begins `now`, which no other job has: names of later jobs sort after those
// of earlier ones. One line of at most 128 bytes.
std::string MakeJobName(std::chrono::system_clock::time_point now, std::string_view run_id);

// Whether a job with run id `run_id` has this name. False for an empty name.
bool IsOfRun(std::string_view job, std::string_view run_id);

}  // namespace muster::trainer
