// The daemon's disk, with the guarantees of rendezvous/journal: batches are atomic. It takes time,
// and may be full or break.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/values/record.h"
#include "test/rendezvous/cluster/checks/incidents.h"
#include "test/rendezvous/simulation/random.h"
#include "test/rendezvous/simulation/scheduler.h"

namespace muster::rendezvous {

// The bytes on the disk, and for the checks the record from which they were made.
struct JobOnDisk {
  std::string bytes;
  JobRecord record;
};

struct DiskBatch {
  struct Entry {
    std::string run_id;
    std::string key;
    std::optional<std::string> value;  // nothing: deleted
  };
  // No record: the job and its entries are forgotten.
  std::vector<std::pair<std::string, std::optional<JobOnDisk>>> jobs;
  std::vector<Entry> entries;
};

// What batches, one after the other, amount to.
struct DiskContents {
  using Entries = std::map<std::string, std::map<std::string, std::string>>;

  std::map<std::string, JobOnDisk> jobs;
  Entries entries;  // by run id, by key

  void Apply(DiskBatch batch);
};

enum class DiskOutcome { kWritten, kFull, kBroken };

class Disk {
 public:
  Disk(Scheduler& scheduler, Random& random, Incidents& incidents)
      : scheduler_(scheduler), random_(random), incidents_(incidents) {}
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  // Calls `done` later, never before returning. One write at a time.
  void Write(DiskBatch batch, std::function<void(DiskOutcome)> done);
  // The writing process has died: the batch in progress is kept or lost, and `done` is not called.
  void WriterDied();

  // Faults, until the given true time.
  void SlowUntil(Duration longest, TimePoint until);
  void FullUntil(TimePoint until) { full_until_ = until; }
  // The next batch fails, and may be kept or lost.
  void BreakOnce() { breaks_ = true; }

  // What would be read after a crash now.
  const DiskContents& contents() const { return contents_; }
  const std::map<std::string, JobOnDisk>& jobs() const { return contents_.jobs; }
  const DiskContents::Entries& entries() const { return contents_.entries; }
  // Counts the starts of a daemon; returns the number of this one, from 1.
  std::uint64_t CountStart() { return ++starts_; }

  // The batch has become durable, as if it had been written by Write.
  void Apply(DiskBatch batch);

  // Called for each job whose state has become durable; null: it was forgotten.
  std::function<void(const std::string& run_id, const JobRecord*)> on_durable;

 private:
  struct Writing {
    DiskBatch batch;
    std::function<void(DiskOutcome)> done;
  };

  void Finish(const std::shared_ptr<Writing>& writing);

  Scheduler& scheduler_;
  Random& random_;
  Incidents& incidents_;
  DiskContents contents_;
  std::uint64_t starts_ = 0;
  std::shared_ptr<Writing> writing_;
  TimePoint slow_until_{};
  Duration longest_{};
  TimePoint full_until_{};
  bool breaks_ = false;
};

}  // namespace muster::rendezvous
