#include "test/rendezvous/cluster/ledger.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

DiskContents::Entries EntriesOf(const JournalContents& read) {
  DiskContents::Entries entries;
  for (const JournalBatch::Entry& entry : read.entries) {
    entries[entry.run_id][entry.key] = entry.value.value_or("");
  }
  return entries;
}

bool Holds(const JournalContents& read, const DiskContents::Entries& entries,
           DiskContents contents) {
  std::erase_if(contents.entries, [](const auto& of_job) { return of_job.second.empty(); });
  if (entries != contents.entries || read.jobs.size() != contents.jobs.size()) return false;
  for (const auto& [run_id, bytes] : read.jobs) {
    const auto job = contents.jobs.find(run_id);
    if (job == contents.jobs.end() || job->second.bytes != bytes) return false;
  }
  return true;
}

}  // namespace

void Ledger::TookOver(etcd::Revision leader, const JournalContents& read) {
  const DiskContents::Entries entries = EntriesOf(read);
  if (read.incarnation <= incarnation_) {
    violations_.Add(Check::kRestored,
                    absl::StrCat("incarnation ", read.incarnation, " follows ", incarnation_));
  }
  if (Holds(read, entries, disk_.contents())) {
    if (!attempts_.empty()) incidents_.Count(Incident::kBatchLost);
  } else {
    bool known = false;
    // The last is the likeliest.
    for (std::size_t i = attempts_.size(); i-- > 0 && !known;) {
      DiskContents with = disk_.contents();
      with.Apply(attempts_[i]);
      known = Holds(read, entries, std::move(with));
      if (!known) continue;
      disk_.Apply(attempts_[i]);
      if (i + 1 == attempts_.size()) kept_.insert(leader_);
      incidents_.Count(Incident::kBatchKept);
    }
    if (!known) {
      violations_.Add(
          Check::kRestored,
          absl::StrCat("a daemon takes over and reads what was never there: ", read.jobs.size(),
                       " jobs, and ", disk_.jobs().size(), " were acknowledged, with ",
                       attempts_.size(), " batches under way"));
    }
  }
  leader_ = leader;
  incarnation_ = read.incarnation;
  attempts_.clear();
}

void Ledger::Writes(etcd::Revision leader, const DiskBatch& batch) {
  // Who was followed writes into the void.
  if (leader == leader_) attempts_.push_back(batch);
}

void Ledger::Acknowledged(etcd::Revision leader) {
  if (leader != leader_) {
    if (kept_.contains(leader)) return;
    return violations_.Add(Check::kDurable,
                           "a daemon that was followed commits what nobody has read");
  }
  disk_.Apply(std::move(attempts_.back()));
  attempts_.clear();
}

}  // namespace muster::rendezvous
