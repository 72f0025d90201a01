// Which of the events that were read are about the job that is looked at.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/replay/event_file.h"

namespace muster::launcher {

// One life of one job.
struct JobEvents {
  std::string job;
  // One for each agent; none is empty. By node id; the events by their time on the node.
  std::vector<NodeEvents> nodes;
  std::vector<std::string> notes;
};

// Puts together what the files have of each node, whichever file it is in, and takes of `job`, or
// if that is empty of the only job there is, the life that ended last. The error, one sentence:
// there are several jobs and none is named, or there is none of that name.
absl::StatusOr<JobEvents> ChooseJob(std::vector<EventFile> files, const std::string& job);

}  // namespace muster::launcher
