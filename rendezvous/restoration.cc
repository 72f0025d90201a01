#include "rendezvous/restoration.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rendezvous/core/record.h"
#include "rendezvous/wire/record_wire.h"

namespace muster::rendezvous {
namespace {

// Handed over by one call: small entries take a microsecond or two each, and records ten
// milliseconds for each megabyte.
constexpr std::size_t kRestoredAtOnce = 10'000;
constexpr std::size_t kBytesRestoredAtOnce = 1 << 20;

}  // namespace

Restoration::Restoration(Driver& driver, JournalContents contents)
    : driver_(driver), contents_(std::move(contents)) {}

absl::StatusOr<bool> Restoration::Go() {
  std::size_t restored = 0;
  std::size_t bytes = 0;
  while (restored < kRestoredAtOnce && bytes < kBytesRestoredAtOnce) {
    ++restored;
    if (next_job_ < contents_.jobs.size()) {
      const auto [run_id, record] = std::move(contents_.jobs[next_job_++]);
      bytes += record.size();
      if (const absl::Status status = RestoreJob(run_id, record); !status.ok()) return status;
    } else if (next_entry_ < contents_.entries.size()) {
      const JournalBatch::Entry entry = std::move(contents_.entries[next_entry_++]);
      if (!entry.value) continue;
      bytes += entry.key.size() + entry.value->size();
      driver_.RestoreEntry(entry.run_id, entry.key, *entry.value);
    } else {
      return false;
    }
  }
  return true;
}

void Restoration::Complete(std::shared_ptr<Restoration> restoration, const Later& later,
                           std::function<void(const absl::Status&)> done) {
  if (later) {
    return later([restoration = std::move(restoration), later, done = std::move(done)] {
      const absl::StatusOr<bool> more = restoration->Go();
      if (!more.ok() || !*more) return done(more.status());
      Complete(restoration, later, done);
    });
  }
  for (;;) {
    const absl::StatusOr<bool> more = restoration->Go();
    if (!more.ok() || !*more) return done(more.status());
  }
}

absl::Status Restoration::RestoreJob(const std::string& run_id, const std::string& bytes) {
  const absl::StatusOr<JobRecord> record = RecordFromBytes(bytes);
  if (!record.ok()) {
    return absl::DataLossError(absl::StrCat(
        "job '", run_id, "' of the state directory: ", std::string(record.status().message())));
  }
  if (record->run_id != run_id || !driver_.Restore(*record)) {
    return absl::DataLossError(absl::StrCat("job '", run_id,
                                            "' of the state directory: what is recorded of it "
                                            "contradicts what is recorded of others"));
  }
  return absl::OkStatus();
}

}  // namespace muster::rendezvous
