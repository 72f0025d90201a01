#include "rendezvous/etcd/batch_plan.h"

#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "proto/staged_batch.pb.h"

namespace muster::rendezvous::etcd {
namespace {

// Collects operations, and begins another transaction where one is full, or where keys that were
// changed are changed again.
class Cutter {
 public:
  void Add(Put put) {
    Make(1, put.key.size() + put.value.size(), Overlaps({put.key, ""}));
    changed_.push_back({put.key, ""});
    transactions_.back().emplace_back(std::move(put));
  }

  void Clear(Range range) {
    Make(1, range.key.size() + range.end.size(), Overlaps(range));
    transactions_.back().emplace_back(Delete{range.key, range.end});
    changed_.push_back(std::move(range));
  }

  std::vector<std::vector<Operation>> Take() { return std::move(transactions_); }

 private:
  // Two ranges have a key in common. There are a hundred at most.
  bool Overlaps(const Range& range) const {
    const auto after = [](const Range& r) { return r.end.empty() ? r.key + '\0' : r.end; };
    for (const Range& each : changed_) {
      if (each.key < after(range) && range.key < after(each)) return true;
    }
    return false;
  }

  void Make(std::size_t operations, std::size_t bytes, bool anew) {
    const bool full = operations_ + operations > kMostOperations || bytes_ + bytes > kMostBytes;
    if (transactions_.empty() || anew || full) {
      transactions_.emplace_back();
      changed_.clear();
      operations_ = bytes_ = 0;
    }
    operations_ += operations;
    bytes_ += bytes;
  }

  std::vector<std::vector<Operation>> transactions_;
  std::vector<Range> changed_;  // in the last one
  std::size_t operations_ = 0;
  std::size_t bytes_ = 0;
};

void Set(const std::string& place, const std::string& value, LargeValues& large, Cutter& cutter) {
  std::vector<Put> chunks = ToChunks(place, value);
  const auto known = large.find(place);
  const std::size_t before = known == large.end() ? 1 : known->second;
  if (chunks.size() < before) {
    cutter.Clear({absl::StrFormat("%s/%04x", place, chunks.size()), JournalKeys::Under(place).end});
  }
  if (chunks.size() > 1) {
    large[place] = chunks.size();
  } else if (known != large.end()) {
    large.erase(known);
  }
  for (Put& put : chunks) cutter.Add(std::move(put));
}

void Forget(const std::string& place, LargeValues& large, Cutter& cutter) {
  large.erase(place);
  cutter.Clear(JournalKeys::Under(place));
}

}  // namespace

std::vector<std::vector<Operation>> PlanBatch(const JournalBatch& batch, const JournalKeys& keys,
                                              LargeValues& large) {
  Cutter cutter;
  for (const JournalBatch::Job& job : batch.jobs) {
    const std::string place = keys.Job(job.run_id);
    if (job.record) {
      Set(place, *job.record, large, cutter);
      continue;
    }
    Forget(place, large, cutter);
    Range entries = keys.EntriesOf(job.run_id);
    large.erase(large.lower_bound(entries.key), large.lower_bound(entries.end));
    cutter.Clear(std::move(entries));
  }
  for (const JournalBatch::Entry& entry : batch.entries) {
    const std::string place = keys.Entry(entry.run_id, entry.key);
    if (entry.value) {
      Set(place, *entry.value, large, cutter);
    } else {
      Forget(place, large, cutter);
    }
  }
  return cutter.Take();
}

std::string ToStaged(const JournalBatch& batch) {
  v1::StagedBatch staged;
  for (const JournalBatch::Job& job : batch.jobs) {
    v1::StagedBatch::Job& each = *staged.add_jobs();
    each.set_run_id(job.run_id);
    if (job.record) each.set_record(*job.record);
  }
  for (const JournalBatch::Entry& entry : batch.entries) {
    v1::StagedBatch::Entry& each = *staged.add_entries();
    each.set_run_id(entry.run_id);
    each.set_key(entry.key);
    if (entry.value) each.set_value(*entry.value);
  }
  return staged.SerializeAsString();
}

absl::StatusOr<JournalBatch> FromStaged(const std::string& bytes) {
  v1::StagedBatch staged;
  if (!staged.ParseFromString(bytes)) {
    return absl::DataLossError("the batch that was being written to etcd cannot be read");
  }
  JournalBatch batch;
  for (const v1::StagedBatch::Job& job : staged.jobs()) {
    batch.jobs.push_back({job.run_id(), std::nullopt});
    if (job.has_record()) batch.jobs.back().record = job.record();
  }
  for (const v1::StagedBatch::Entry& entry : staged.entries()) {
    batch.entries.push_back({entry.run_id(), entry.key(), std::nullopt});
    if (entry.has_value()) batch.entries.back().value = entry.value();
  }
  return batch;
}

std::vector<std::vector<Operation>> PlanParts(const std::string& staged, const JournalKeys& keys) {
  Cutter cutter;
  for (Put& put : ToChunks(keys.Batch(), staged)) cutter.Add(std::move(put));
  return cutter.Take();
}

}  // namespace muster::rendezvous::etcd
