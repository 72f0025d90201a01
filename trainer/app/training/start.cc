#include "trainer/app/training/start.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "trainer/app/options/settings.h"
#include "trainer/app/training/agreement.h"
#include "trainer/app/training/resume.h"
#include "trainer/app/training/snapshot.h"
#include "trainer/app/training/train_state.h"
#include "trainer/io/formats/files.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kMostSign = 64;
constexpr std::size_t kMostRank = 16;

// The directory of a rank that may become an owner; nullopt for other ranks.
absl::StatusOr<std::optional<CheckpointDirectory>> OpenOwn(const CheckpointOptions& options,
                                                           bool candidate) {
  if (!candidate || options.directory.empty()) return std::nullopt;
  absl::StatusOr<CheckpointDirectory> opened =
      CheckpointDirectory::Open(options.directory, options.keep);
  if (!opened.ok()) return opened.status();
  return *std::move(opened);
}

}  // namespace

absl::StatusOr<CheckpointOwners> FindCheckpointOwners(const CheckpointOptions& options,
                                                      int local_rank, Group& group) {
  const bool all_write = options.format == CheckpointFormat::kShards;
  auto directory = OpenOwn(options, all_write || local_rank == 0 || group.rank() == 0);
  absl::StatusOr<std::string> sign = std::string();
  if (!directory.ok()) sign = directory.status();
  if (directory.ok() && *directory) sign = (*directory)->LeaveSign();
  // After this, all signs have been written.
  const auto signs = FromAll(sign, kMostSign, group);

  // The lowest rank with the same directory, possibly this one.
  int lowest = -1;
  for (int rank = 0; signs.ok() && *directory && lowest < 0; ++rank) {
    const std::string& other = (*signs)[static_cast<std::size_t>(rank)];
    if (!other.empty() && (*directory)->HasSign(other)) lowest = rank;
  }
  // After this, all ranks have looked.
  const std::vector<std::string> found = group.Gather(absl::StrCat(lowest), kMostRank);
  if (directory.ok() && *directory && sign.ok()) (*directory)->RemoveSign(*sign);
  if (!signs.ok()) return signs.status();

  CheckpointOwners owners;
  const bool writes = lowest == group.rank() || (all_write && lowest >= 0);
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::string& owner = found[static_cast<std::size_t>(rank)];
    if (owner == absl::StrCat(rank)) owners.ranks.push_back(rank);
    const bool together = all_write ? owner == absl::StrCat(lowest) : rank == group.rank();
    if (writes && together) owners.team.push_back(rank);
  }
  if (writes) owners.directory = *std::move(directory);
  return owners;
}

namespace {

constexpr std::chrono::seconds kTimeToEnd(5);

// Identifies this boot of this machine, also within its containers.
std::string ThisMachine() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name) == 0 ? name : "unknown";
}

// 0, or errno. `command` is F_SETLK, or F_SETLKW to wait.
int Lock(int fd, int command) {
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  int error = 0;
  do {
    error = fcntl(fd, command, &whole) == 0 ? 0 : errno;
  } while (error == EINTR);
  return error;
}

// Like a waiting Lock(), with a time limit: EAGAIN after it. Then a thread is still waiting, and
// `fd` has to stay open.
int LockSoon(int fd) {
  auto result = std::make_shared<std::promise<int>>();
  std::future<int> locked = result->get_future();
  std::thread([fd, result] { result->set_value(Lock(fd, F_SETLKW)); }).detach();
  return locked.wait_for(kTimeToEnd) == std::future_status::ready ? locked.get() : EAGAIN;
}

// The holder of a lock, from its file.
struct Holder {
  std::string pid = "unknown";
  std::string host = "unknown";
  std::string machine;
};

Holder ReadHolder(int fd) {
  char text[512] = {};
  const ssize_t count = pread(fd, text, sizeof(text) - 1, 0);
  text[std::max<ssize_t>(count, 0)] = '\0';
  const std::vector<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" \n"));
  if (words.size() < 3) return {};
  return {words[0], words[1], words[2]};
}

// If writing fails, only another run's message lacks it.
void WriteHolder(int fd) {
  const std::string text = absl::StrCat(getpid(), " ", HostName(), " ", ThisMachine(), "\n");
  if (ftruncate(fd, 0) == 0) static_cast<void>(!pwrite(fd, text.data(), text.size(), 0));
}

}  // namespace

absl::StatusOr<DirectoryLock> DirectoryLock::Take(const std::string& directory) {
  DirectoryLock lock;
  const std::string path = absl::StrCat(directory, "/.lock");
  base::UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file.valid()) return lock;
  int error = Lock(file.get(), F_SETLK);
  if (error == EAGAIN || error == EACCES) {
    const Holder holder = ReadHolder(file.get());
    if (!holder.machine.empty() && holder.machine != ThisMachine()) {
      lock.warning_ =
          absl::StrCat(directory, " is also in use by process ", holder.pid, " on host ",
                       holder.host, ", unless that host is gone; two runs need a directory each");
      return lock;
    }
    error = LockSoon(file.get());
    if (error == EAGAIN) {
      static_cast<void>(file.release());
      return absl::InvalidArgumentError(absl::StrCat(
          "use the checkpoint directory ", directory, ": process ", holder.pid, " on host ",
          holder.host, " is using it; give each run a directory of its own, or end that process"));
    }
  }
  if (error != 0) return lock;
  WriteHolder(file.get());
  lock.file_ = std::move(file);
  return lock;
}

namespace {

bool IsOwner(const Job& job, const CheckpointOwners& owners) {
  return owners.directory && owners.team[0] == job.env.rank;
}

// On this rank's directory; nullopt unless it is the owner.
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

// OK if a checkpoint in the directory is of the step in its name, by which it is found.
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

// The checkpoints in the directory that belong to another training than this run's. If it continues
// a training of which this directory has some checkpoints, though perhaps not the last one, those
// are the run's own.
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
  // The options next to the checkpoints, for repeating the run.
  return WriteDurably(absl::StrCat(job.options.checkpoint.directory, "/config.toml"),
                      ConfigText(job.options.settings, job.options.program),
                      Folder::kOfCheckpoints);
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
  const BatchRequest wanted = {job.options.batch_size, strategy.place().parts, options.on_resize};
  status = point->checkpoint ? GoOnWithBatch(job, wanted, start.state)
                             : BeginBatch(wanted, &start.state);
  if (!status.ok()) return status;
  return start;
}

}  // namespace muster::trainer
