// The daemon's tenants: whose journal is opened when, and whose jobs are found.
#include <random>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/values/phrases.h"
#include "rendezvous/server/server.h"
#include "rendezvous/server/tenant_openings.h"

namespace muster::rendezvous {
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

void Server::OneIsResumed() {
  if (--to_be_resumed_ == 0) std::exchange(all_resumed_, nullptr)();
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
