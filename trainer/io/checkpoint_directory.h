// The directory with the checkpoints of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/formats/shard_index.h"
#include "trainer/io/state_dict.h"

namespace muster::trainer {

// Contains files such as step-000000001200.pt, each a checkpoint that torch.load can read, or
// directories such as step-000000001200, each a checkpoint in shards (shard_plan.h), a text
// file `latest` with the name of the one to resume from, or "none", and the job that last used the
// directory, and, after MarkBest, a text file `best` with the name of the best one. Where a run was
// begun again from an older checkpoint, or from none, `latest` also lists the steps whose
// checkpoints are strangers to it: they are neither counted, nor removed, nor fallen back on. Each
// file appears complete or not at all, and shards count once their index is there, so a run may be
// killed, or the machine lose power, at any time. Only one process at a time may save; any may
// load, and any may write shards between PrepareShards and SaveIndex. Not thread-safe.
class CheckpointDirectory {
 public:
  // Creates the directory and its parents if needed. `keep`, at least 1, is the number of
  // checkpoints to keep. kInvalidArgument when the directory cannot be created.
  static absl::StatusOr<CheckpointDirectory> Open(std::string path, int keep);

  // What `latest` says.
  struct Latest {
    std::optional<std::int64_t> step;  // of the checkpoint to resume from; nullopt: none yet
    std::string job;                   // one line; empty: unknown
    // Steps with a checkpoint of an earlier run that this one does not go on from, in ascending
    // order.
    std::vector<std::int64_t> strangers;

    bool operator==(const Latest&) const = default;
  };
  // nullopt when there is no such file or it cannot be understood.
  std::optional<Latest> ReadLatest() const;
  // Synced to disk. If a stranger is marked as the best, it is no longer. Errors as Save.
  absl::Status WriteLatest(const Latest& latest) const;

  // The steps whose checkpoints are strangers to a run that goes on from what is of step `from` in
  // this line of checkpoints, here or elsewhere, or from none: all later ones, and those that
  // `latest` lists. Of what a run that goes on from one of those came by before, nothing is known:
  // to it all others are strangers.
  std::vector<std::int64_t> StrangersTo(std::optional<std::int64_t> from) const;

  // Writes `value` as the checkpoint after step `step` (0 or more), syncs it to disk, and makes it
  // the latest, of job `job`. Marks the checkpoint of step `best` as the best, if one is given and
  // there, and only then removes all but the `keep` newest and the best. Strangers and checkpoints
  // of later steps, which exist if a run was restarted from an older one, are neither counted nor
  // removed.
  //
  // On an error (kUnavailable, for example on a full disk; kInvalidArgument when the user has to
  // change something) the checkpoints of other steps are untouched, and `latest` still names a
  // complete one if it did before. Failing to remove old files is not an error.
  absl::Status Save(std::int64_t step, const Value& value, const std::string& job,
                    std::optional<std::int64_t> best = std::nullopt);

  // The same in shards. One process prepares, then any of them write their shards into
  // ShardsPathOf(step), and when all are written one process saves the index, which makes it a
  // checkpoint. What is there of an earlier checkpoint of that step, in either form, is given up.
  // Errors as Save().
  absl::Status PrepareShards(std::int64_t step) const;
  absl::Status SaveIndex(std::int64_t step, const ShardIndex& index, const std::string& job,
                         std::optional<std::int64_t> best = std::nullopt);

  // The step that `best` names; nullopt when there is no such file or it cannot be understood.
  std::optional<std::int64_t> ReadBest() const;
  // Makes the checkpoint of step `step` the best, which stays until another one is the best, and
  // removes the former best one if it is old. Does nothing when there is no such checkpoint. Errors
  // as Save().
  absl::Status MarkBest(std::int64_t step) const;

  // Removes what runs that were killed while they saved have left: half-written files, shards
  // without an index, and signs. Only while nobody saves or looks for signs.
  void RemoveRemains() const;

  struct Found {
    std::int64_t step = 0;
    std::string path;  // of a file, or of a directory with shards
    // A sentence for each newer checkpoint that was skipped because it is damaged or missing, or
    // shards without an index.
    std::vector<std::string> warnings;
  };

  // Finds the checkpoint that `latest` names or, if that is damaged or missing, the newest intact
  // one before it that is no stranger. If `latest` names none, finds the newest intact one. Reads
  // each to its end, and keeps nothing. nullopt when there are no checkpoints. kInvalidArgument
  // when none of them is intact; kUnavailable when reading fails.
  absl::StatusOr<std::optional<Found>> FindNewest() const;

  // Processes find out by a sign whether they have the same directory: one leaves it, an empty file
  // with a name that nothing else has, and the others look for it. kInvalidArgument when the
  // directory cannot be written to.
  absl::StatusOr<std::string> LeaveSign() const;
  bool HasSign(const std::string& sign) const;
  void RemoveSign(const std::string& sign) const;

  // The steps that have a file or an index of shards, intact or not, in ascending order.
  std::vector<std::int64_t> Steps() const { return StepsWhere(/*finished=*/true); }
  // Where the checkpoint of `step` is: the directory of its shards if they have an index, else the
  // file, there or not.
  std::string PathOf(std::int64_t step) const;
  // The directory of its shards, there or not.
  std::string ShardsPathOf(std::int64_t step) const;
  // The step whose checkpoint here `path` leads to; nullopt when it leads to none.
  std::optional<std::int64_t> StepAt(const std::string& path) const;
  // A sentence for each directory of shards without an index, of steps after `step`: why it is
  // skipped. The newest first.
  std::vector<std::string> UnfinishedAfter(std::int64_t step) const;
  const std::string& path() const { return path_; }

 private:
  CheckpointDirectory(std::string path, int keep) : path_(std::move(path)), keep_(keep) {}
  // The steps that have shards without an index.
  std::vector<std::int64_t> Unfinished() const { return StepsWhere(/*finished=*/false); }
  std::vector<std::int64_t> StepsWhere(bool finished) const;
  // OK when the checkpoint of `step` is intact. Errors as CheckCheckpoint().
  absl::Status CheckStep(std::int64_t step) const;
  std::string FilePathOf(std::int64_t step) const;
  // The last part of PathOf.
  std::string StoredName(std::int64_t step) const;
  // The strangers that are still there, without `step`, which is written anew.
  std::vector<std::int64_t> StrangersBeside(std::int64_t step) const;
  // Does nothing when there is no checkpoint of `step`, it is the best already, or a stranger.
  absl::Status WriteBest(std::int64_t step) const;
  // Makes the new checkpoint of `step` the latest, and gives up older ones.
  absl::Status Enter(std::int64_t step, const std::string& job,
                     std::optional<std::int64_t> best) const;
  // All but the `keep` newest up to step `newest`, of those that are no strangers.
  void RemoveOld(std::int64_t newest, const std::vector<std::int64_t>& strangers) const;
  void RemoveHalves() const;

  std::string path_;
  int keep_;
};

}  // namespace muster::trainer
