#include "trainer/app/training/start.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "trainer/app/options/config_file.h"
#include "trainer/app/training/batch.h"
#include "trainer/app/training/broadcast.h"
#include "trainer/app/training/resume.h"
#include "trainer/app/training/snapshot.h"
#include "trainer/io/durable_file.h"

namespace muster::trainer {
namespace {

BatchRequest BatchWanted(const Job& job, const Strategy& strategy) {
  return {job.options.batch_size, strategy.place().parts, job.options.checkpoint.on_resize};
}

// Writes the options beside the checkpoints, for whoever wants such a run again.
absl::Status WriteConfig(const Options& options) {
  const auto file = DurableFile::Create(absl::StrCat(options.checkpoint.directory, "/config.toml"),
                                        Folder::kOfCheckpoints);
  if (!file.ok()) return file.status();
  const absl::Status written = (*file)->Append(ConfigText(options.settings, options.program));
  return written.ok() ? (*file)->Commit() : written;
}

bool IsOwner(const Job& job, const CheckpointOwners& owners) {
  return owners.directory && owners.team[0] == job.env.rank;
}

// Of this rank's directory; nullopt unless it is the owner.
absl::StatusOr<std::optional<DirectoryLock>> TakeLock(const Job& job,
                                                      const CheckpointOwners& owners) {
  std::optional<DirectoryLock> lock;
  absl::Status status;
  if (IsOwner(job, owners)) {
    absl::StatusOr<DirectoryLock> taken = DirectoryLock::Take(owners.directory->path());
    status = taken.status();
    if (taken.ok()) lock = *std::move(taken);
  }
  status = FirstFailure(status, job.group());
  if (!status.ok()) return status;
  if (lock && !lock->warning().empty()) {
    job.progress.Say(absl::StrCat("warning: ", lock->warning()));
  }
  return lock;
}

// OK when a checkpoint of the directory is of the step that its name says: it is found by that.
absl::Status CheckName(const ResumePoint& point, const StartPoint& start) {
  if (!point.checkpoint || !start.kept_step || *start.kept_step == start.state.step) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("resume from ", point.checkpoint->place, ": its name says step ",
                   *start.kept_step, ", and it is of step ", start.state.step,
                   "; give it its own name again, or another one and --resume"));
}

std::string StrangersSentence(const std::vector<std::int64_t>& steps, const Job& job) {
  return absl::StrCat("warning: ", job.options.checkpoint.directory, " has ",
                      steps.size() == 1
                          ? absl::StrCat("a checkpoint of an earlier run, of step ", steps.front())
                          : absl::StrCat(steps.size(), " checkpoints of an earlier run, of steps ",
                                         steps.front(), " to ", steps.back()),
                      "; this run writes over those of its own steps, and leaves the others alone");
}

// The checkpoints of the directory that are of another training than this run's. Where it goes on
// with a training of which this directory has a part, though perhaps not the last step, that part
// is the run's own.
std::vector<std::int64_t> StrangersHere(const CheckpointDirectory& directory,
                                        const CheckpointDirectory::Latest& before,
                                        const ResumePoint& point, const StartPoint& start) {
  const bool known = !before.job.empty();
  const bool own = known && before.job == start.job;
  const bool same = own || (known && before.step && before.job == point.maker);
  const bool went_back =
      start.kept_step &&
      std::binary_search(before.strangers.begin(), before.strangers.end(), *start.kept_step);
  if (same && point.searched && !went_back) return before.strangers;
  if (start.kept_step) return directory.StrangersTo(start.kept_step);
  return directory.StrangersTo(same && point.checkpoint ? std::optional(start.state.step)
                                                        : std::nullopt);
}

absl::Status MarkDirectory(const Job& job, const ResumePoint& point, const StartPoint& start) {
  const std::optional<CheckpointDirectory>& directory = start.owners.directory;
  if (!IsOwner(job, start.owners)) return absl::OkStatus();
  if (start.lock->held()) directory->RemoveRemains();
  const CheckpointDirectory::Latest before =
      directory->ReadLatest().value_or(CheckpointDirectory::Latest());
  const CheckpointDirectory::Latest latest = {start.kept_step, start.job,
                                              StrangersHere(*directory, before, point, start)};
  if (latest.strangers != before.strangers && !latest.strangers.empty()) {
    job.progress.Say(StrangersSentence(latest.strangers, job));
  }
  if (before != latest) {
    const absl::Status marked = directory->WriteLatest(latest);
    if (!marked.ok()) return marked;
  }
  return WriteConfig(job.options);
}

absl::Status GoOn(const Job& job, const Resumable& resumable, Strategy& strategy,
                  TrainState& state) {
  const auto sentences = PutBack(resumable.snapshot, job.options, strategy, state);
  if (!sentences.ok()) {
    return absl::Status(
        sentences.status().code(),
        absl::StrCat("resume from ", resumable.place, ": ", sentences.status().message()));
  }
  if (job.leads()) {
    job.progress.Say(absl::StrCat("resuming from ", resumable.place, ": step ", state.step,
                                  ", epoch ", state.epoch + 1, ", ", state.position, " of ",
                                  state.dataset_size, " ", job.unit()));
    for (const std::string& sentence : *sentences) job.progress.Say(sentence);
  }
  job.beats.Send(state.step);
  return absl::OkStatus();
}

absl::Status Initialize(const Job& job, Strategy& strategy) {
  absl::StatusOr<std::string> mine = std::string();
  if (job.leads()) mine = InitFrom(job.options.checkpoint, strategy.StateDict());
  const auto loaded = FromRankZero(mine, job.group());
  if (!loaded.ok()) return loaded.status();
  if (job.leads() && !loaded->empty()) job.progress.Say(*loaded);
  return absl::OkStatus();
}

absl::Status GoOnWithBatch(const Job& job, const BatchRequest& wanted, TrainState& state) {
  const TrainState before = state;
  const absl::Status status = ResumeBatch(wanted, &state);
  if (!status.ok() || !job.leads()) return status;
  if (before.parts != state.parts) {
    job.progress.Say(absl::StrCat(
        state.parts == job.env.world_size
            ? absl::StrCat("the world had ", before.parts, " ranks and has ", state.parts)
            : absl::StrCat("a batch had ", before.parts, " parts and has ", state.parts),
        ": steps of ", state.batch_size, " ", job.unit()));
  } else if (state.batch_size != job.options.batch_size) {
    job.progress.Say(absl::StrCat("steps of ", state.batch_size, " ", job.unit(),
                                  ", as in the checkpoint, not of --batch-size ",
                                  job.options.batch_size));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StartPoint> FindStart(const Job& job, Strategy& strategy) {
  const CheckpointOptions& options = job.options.checkpoint;
  auto owners = FindCheckpointOwners(options, job.env.local_rank, job.group());
  if (!owners.ok()) return owners.status();
  auto lock = TakeLock(job, *owners);
  if (!lock.ok()) return lock.status();
  const auto point = FindResumePoint(options, job.env, *owners, job.group());
  if (!point.ok()) return point.status();
  for (const std::string& warning : point->warnings) {
    if (job.leads()) job.progress.Say(absl::StrCat("warning: ", warning));
  }
  StartPoint start = {.state = {.seed = job.options.seed, .dataset_size = job.data.train->size()},
                      .owners = *std::move(owners),
                      .job = point->job,
                      .kept_step = point->kept_step,
                      .kept_everywhere = !point->checkpoint || point->kept_everywhere,
                      .lock = *std::move(lock)};
  absl::Status status = point->checkpoint ? GoOn(job, *point->checkpoint, strategy, start.state)
                                          : Initialize(job, strategy);
  if (status.ok()) status = FirstFailure(CheckName(*point, start), job.group());
  if (status.ok()) status = FirstFailure(MarkDirectory(job, *point, start), job.group());
  if (!status.ok()) return status;
  const BatchRequest wanted = BatchWanted(job, strategy);
  status = point->checkpoint ? GoOnWithBatch(job, wanted, start.state)
                             : BeginBatch(wanted, &start.state);
  if (!status.ok()) return status;
  return start;
}

}  // namespace muster::trainer
