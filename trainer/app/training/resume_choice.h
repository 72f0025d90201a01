// Decides which of the checkpoints that the ranks have is resumed from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::trainer {

// What is in one rank's checkpoint directory.
struct DirectoryReport {
  int rank = 0;
  std::string job;                     // that last used it; empty: unknown
  std::optional<std::int64_t> latest;  // the step that its file `latest` names
  std::optional<std::int64_t> step;    // of its newest whole checkpoint, not after `latest`
};

// What is asked for, and by whom.
struct ResumeRequest {
  bool automatic = true;   // --resume auto, rather than none or a file
  bool restarted = false;  // other workers of this job have run before
  std::string_view run_id;
};

struct ResumeChoice {
  std::string job;          // this job's name; empty: nobody knows it, and it needs one
  std::optional<int> rank;  // whose checkpoint is resumed from; nullopt: nobody's
  std::int64_t step = 0;    // of that checkpoint
  std::string maker;        // the job that has saved it; empty: unknown
  // Of the ranks that reported, those that have that checkpoint.
  std::vector<int> holders;
  // Ranks with a checkpoint of a later step that belongs to an earlier job.
  std::vector<int> passed_over;
};

// A job's first workers do what is asked for. With --resume auto they take the newest checkpoint:
// of the directories that have one, that of the job which came last, and the highest step among
// those of the same job.
//
// After a restart only directories that this job has used before count, whatever is asked for: its
// name is the newest in `reports` that has its run id. So a job that was begun afresh or from a
// file goes on from what it has saved since, and what a node that joins has left over from another
// job is not taken for it. Where --resume is not auto, a checkpoint that `latest` does not name
// does not count either: it may be older than the job. If no directory has this job's name, only
// those without any name are left to choose from.
ResumeChoice ChooseCheckpoint(const std::vector<DirectoryReport>& reports,
                              const ResumeRequest& request);

}  // namespace muster::trainer
