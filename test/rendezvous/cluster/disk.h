// The daemon's disk: rendezvous/journal as it promises to be. It keeps batches whole or not at all,
// takes its time, and may be full or break.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/record.h"
#include "test/rendezvous/cluster/checks/incidents.h"
#include "test/rendezvous/cluster/scheduler.h"
#include "test/rendezvous/simulation/random.h"

namespace muster::rendezvous {

// The bytes are what the disk holds; the record is what they were made of, for the checks.
struct JobOnDisk {
  std::string bytes;
  JobRecord record;
};

struct DiskBatch {
  struct Entry {
    std::string run_id;
    std::string key;
    std::optional<std::string> value;  // nothing: it is deleted
  };
  // Nothing: the job is forgotten, and its entries.
  std::vector<std::pair<std::string, std::optional<JobOnDisk>>> jobs;
  std::vector<Entry> entries;
};

enum class DiskOutcome { kWritten, kFull, kBroken };

class Disk {
 public:
  using Entries = std::map<std::string, std::map<std::string, std::string>>;

  Disk(Scheduler& scheduler, Random& random, Incidents& incidents)
      : scheduler_(scheduler), random_(random), incidents_(incidents) {}
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  // Calls `done` later, never within. One at a time.
  void Write(DiskBatch batch, std::function<void(DiskOutcome)> done);
  // Whoever writes is dead: the batch under way is there or not, and `done` is not called.
  void WriterDied();

  // Faults, until a true time.
  void SlowUntil(Duration longest, TimePoint until);
  void FullUntil(TimePoint until) { full_until_ = until; }
  // The next batch fails, and may be there or not.
  void BreakOnce() { breaks_ = true; }

  // What would be read after a crash at this instant.
  const std::map<std::string, JobOnDisk>& jobs() const { return jobs_; }
  const Entries& entries() const { return entries_; }
  // A daemon starts: counted from 1.
  std::uint64_t CountStart() { return ++starts_; }

  // Called with each job that has become durable; null: it is forgotten.
  std::function<void(const std::string& run_id, const JobRecord*)> on_durable;

 private:
  struct Writing {
    DiskBatch batch;
    std::function<void(DiskOutcome)> done;
  };

  void Apply(DiskBatch& batch);
  void Finish(const std::shared_ptr<Writing>& writing);

  Scheduler& scheduler_;
  Random& random_;
  Incidents& incidents_;
  std::map<std::string, JobOnDisk> jobs_;
  Entries entries_;
  std::uint64_t starts_ = 0;
  std::shared_ptr<Writing> writing_;
  TimePoint slow_until_{};
  Duration longest_{};
  TimePoint full_until_{};
  bool breaks_ = false;
};

}  // namespace muster::rendezvous
