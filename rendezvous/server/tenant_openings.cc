#include "rendezvous/server/tenant_openings.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "rendezvous/core/values/record.h"
#include "rendezvous/wire/wire.h"

namespace muster::rendezvous {

absl::Status TenantOpenings::Ask(const std::string& tenant) {
  const auto failed = failures_.find(tenant);
  if (failed != failures_.end() && options_.now() < failed->second.until) {
    return failed->second.why;
  }
  if (awaited_.try_emplace(tenant).second) {
    waiting_.push_back(tenant);
    Next();
  }
  if (awaited_.contains(tenant)) {
    return absl::UnavailableError("the daemon is still opening this tenant's state");
  }
  const auto ended = failures_.find(tenant);
  return ended == failures_.end() ? absl::OkStatus() : ended->second.why;
}

bool TenantOpenings::Await(const std::string& tenant, std::function<void()> over) {
  const auto opening = awaited_.find(tenant);
  if (opening == awaited_.end()) return false;
  opening->second.push_back(std::move(over));
  return true;
}

bool TenantOpenings::IsNews(const std::string& tenant, const std::string& why) {
  return std::exchange(failures_[tenant].said, why) != why;
}

void TenantOpenings::Next() {
  while (under_way_ < options_.at_once && !waiting_.empty()) {
    const std::string tenant = std::move(waiting_.front());
    waiting_.pop_front();
    ++under_way_;
    open_(tenant,
          lifetime_.Guard([this, tenant](const absl::Status& status) { End(tenant, status); }));
  }
}

void TenantOpenings::End(const std::string& tenant, const absl::Status& status) {
  --under_way_;
  if (status.ok()) {
    failures_.erase(tenant);
  } else {
    Failure& failure = failures_[tenant];
    failure.why = status;
    failure.pause = std::clamp(2 * failure.pause, options_.after_failure, options_.at_most);
    failure.until = options_.now() + failure.pause;
  }
  const auto opening = awaited_.extract(tenant);
  Next();
  for (const std::function<void()>& over : opening.mapped()) over();
}

namespace {

// Per call: small entries take a microsecond or two each, and records ten milliseconds per
// megabyte.
constexpr std::size_t kRestoredAtOnce = 10'000;
constexpr std::size_t kBytesRestoredAtOnce = 1 << 20;

}  // namespace

JournalReplay::JournalReplay(DaemonLoop& daemon_loop, JournalContents contents)
    : daemon_loop_(daemon_loop), contents_(std::move(contents)) {}

absl::StatusOr<bool> JournalReplay::Go() {
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
      daemon_loop_.RestoreEntry(entry.run_id, entry.key, *entry.value);
    } else {
      return false;
    }
  }
  return true;
}

void JournalReplay::Complete(std::shared_ptr<JournalReplay> journal_replay, const Later& later,
                             std::function<void(const absl::Status&)> done) {
  if (later) {
    return later([journal_replay = std::move(journal_replay), later, done = std::move(done)] {
      const absl::StatusOr<bool> more = journal_replay->Go();
      if (!more.ok() || !*more) return done(more.status());
      Complete(journal_replay, later, done);
    });
  }
  for (;;) {
    const absl::StatusOr<bool> more = journal_replay->Go();
    if (!more.ok() || !*more) return done(more.status());
  }
}

absl::Status JournalReplay::RestoreJob(const std::string& run_id, const std::string& bytes) {
  const absl::StatusOr<JobRecord> record = RecordFromBytes(bytes);
  if (!record.ok()) {
    return absl::DataLossError(absl::StrCat(
        "job '", run_id, "' of the state directory: ", std::string(record.status().message())));
  }
  if (record->run_id != run_id || !daemon_loop_.Restore(*record)) {
    return absl::DataLossError(
        absl::StrCat("job '", run_id,
                     "' of the state directory: its records contradict those of other tenants"));
  }
  return absl::OkStatus();
}

}  // namespace muster::rendezvous
