#include "rendezvous/server/tenant_openings.h"

#include <algorithm>
#include <random>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

#include "rendezvous/core/values/phrases.h"
#include "rendezvous/core/values/record.h"
#include "rendezvous/server/server.h"
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

// The daemon's tenants: whose journal is opened when, and whose jobs are found.

namespace {

// A job's incarnation must differ from those of other daemons, and of this one before it lost its
// state: so each start picks its first at random, and has 2^32 of them.
Incarnation AnyIncarnation() {
  std::random_device random;
  const Incarnation high = random() & 0x7fff'ffff;
  return (high << 32) + 1;
}

void LogTransition(const std::string& tenant, const Transition& transition) {
  const std::string of = tenant.empty() ? "" : "tenant=" + tenant + " ";
  const std::string node = transition.node.empty() ? "" : " node=" + NameInLog(transition.node);
  spdlog::info("{}run={} round={}{} {}", of, NameInLog(transition.run_id), transition.round, node,
               transition.text);
}

}  // namespace

void Server::Resume(Resumed resumed, std::function<void()> all_resumed) {
  Restore(*home_, *memory_.journal, std::exchange(memory_.contents, {}),
          [this, resumed = std::move(resumed),
           all_resumed = std::move(all_resumed)](const absl::Status& status) mutable {
            if (status.ok()) ResumeTenants(std::move(all_resumed));
            resumed(status);
          });
}

void Server::ResumeTenants(std::function<void()> all_resumed) {
  const std::vector<std::string> tenants = std::exchange(memory_.tenants, {});
  all_resumed_ = std::move(all_resumed);
  to_be_resumed_ = tenants.size() + 1;
  unopened_.insert(tenants.begin(), tenants.end());
  for (const std::string& tenant : tenants) {
    // A tenant that cannot be resumed gets the error on its calls; the others go on.
    openings_.Ask(tenant).IgnoreError();
    if (!openings_.Await(tenant, [this] { OneIsResumed(); })) OneIsResumed();
  }
  OneIsResumed();
}

std::unique_ptr<DaemonLoop> Server::MakeLoop(const std::string& tenant, JobFigures& figures) {
  const bool only = tenant.empty();
  const Incarnation first_incarnation = AnyIncarnation();
  return std::make_unique<DaemonLoop>(
      io_,
      [this, tenant, &figures](const Transition& transition) {
        LogTransition(tenant, transition);
        figures.Count(transition);
        changes_.Changed(tenant, transition);
      },
      Coordinator::Options{
          .store_bytes = only ? limits::kStoreBytes.most : limits::kStoreBytesOfTenant.most,
          .all_store_bytes = &store_bytes_,
          .names_required = many_jobs_,
          .first_incarnation = first_incarnation,
          .durable = durable_,
          .shortest_lease = memory_.shortest_lease},
      LogReaders::Options{
          .readers = only ? limits::kLogReaders.most : limits::kLogReadersOfTenant.most,
          .deliveries = only ? limits::kLogDeliveries.most : limits::kLogDeliveriesOfTenant.most,
          .all_readers = &log_readers_,
          .all_deliveries = &log_deliveries_,
          // No agent of another life of this daemon may mistake it for its own delivery.
          .first_delivery = first_incarnation});
}

void Server::Restore(Tenant& tenant, Journal& journal, JournalContents contents, Resumed restored) {
  JournalReplay::Later later;
  if (memory_.leads) {
    later = [this](auto part) { turns_.Add(std::move(part)); };
  }
  JournalReplay::Complete(
      std::make_shared<JournalReplay>(*tenant.daemon_loop, std::move(contents)), later,
      [this, &tenant, &journal, restored = std::move(restored)](const absl::Status& status) {
        if (status.ok()) {
          tenant.daemon_loop->UseJournal(journal, memory_.on_fatal);
          if (memory_.leads) tenant.daemon_loop->LeadBy(memory_.leads);
        }
        restored(status);
      });
}

absl::StatusOr<DaemonLoop*> Server::LoopOf(const std::string& tenant) {
  const auto found = tenants_.find(tenant);
  if (found != tenants_.end()) return found->second.daemon_loop.get();
  if (!durable_) {
    Tenant newcomer;
    newcomer.daemon_loop = MakeLoop(tenant, *newcomer.figures);
    Add(tenant, std::move(newcomer));
  } else if (absl::Status status = openings_.Ask(tenant); !status.ok()) {
    return status;
  }
  return tenants_.at(tenant).daemon_loop.get();
}

void Server::Open(const std::string& tenant, Resumed opened) {
  memory_.open(tenant, lifetime_.Guard([this, tenant, opened = std::move(opened)](
                                           absl::StatusOr<OpenedJournal> journal) {
    if (!journal.ok()) {
      SayWhyNotOpen(tenant, journal.status());
      return opened(absl::UnavailableError("the daemon cannot open this tenant's state"));
    }
    const auto newcomer = std::make_shared<Tenant>();
    newcomer->daemon_loop = MakeLoop(tenant, *newcomer->figures);
    newcomer->journal = std::move(journal->journal);
    Restore(*newcomer, *newcomer->journal, std::move(journal->contents),
            [this, tenant, newcomer, opened](const absl::Status& restored) {
              if (restored.ok()) {
                Add(tenant, std::move(*newcomer));
              } else {
                SayWhyNotOpen(tenant, restored);
              }
              opened(restored);
            });
  }));
}

void Server::SayWhyNotOpen(const std::string& tenant, const absl::Status& status) {
  const std::string why(status.message());
  if (!openings_.IsNews(tenant, why)) return;
  spdlog::error("tenant '{}': {}; will retry on the next request, at most once a minute", tenant,
                why);
}

void Server::Add(const std::string& name, Tenant tenant) {
  if (!draining_.empty()) tenant.daemon_loop->Drain(draining_);
  DaemonLoop& daemon_loop = *tenants_.emplace(name, std::move(tenant)).first->second.daemon_loop;
  if (listener_ != nullptr) {
    daemon_loop.BeginToServe();
    pending_death_notices_.Tell(daemon_loop);
  }
  unopened_.erase(name);
  if (unopened_.empty()) pending_death_notices_.Clear();
}

const DaemonLoop* Server::FindLoop(const std::string& tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? nullptr : found->second.daemon_loop.get();
}

const JobFigures* Server::FindFigures(const std::string& tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? nullptr : found->second.figures.get();
}

}  // namespace muster::rendezvous
