// Everything a daemon decides: its jobs, the calls of their stores, and when each thing may be
// told.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/core/coordinator.h"
#include "rendezvous/core/delivery.h"
#include "rendezvous/core/event.h"
#include "rendezvous/core/log_readers.h"
#include "rendezvous/core/record.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/store_calls.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// What a commit writes to a journal, all of it or nothing; values are as they were when the commit
// began.
struct Batch {
  struct Job {
    std::string run_id;
    // nullopt: the job, and every entry of its store, is forgotten. A job that has begun again
    // since appears a second time, later.
    std::optional<JobRecord> record;
  };
  struct Entry {
    std::string run_id;
    std::string key;
    std::optional<std::string> value;  // nullopt: the entry is deleted
  };

  // All of `jobs` come before all of `entries`.
  std::vector<Job> jobs;
  std::vector<Entry> entries;
};

// The Coordinator and what surrounds it in every daemon, shipped or simulated. Its owner hands in
// what happens, each time with `now`, and then
//  - tells what NextTelling returns, until that returns nothing;
//  - does what NextLogAction returns, in the same way, where somebody reads logs;
//  - if NeedsCommit, writes a Batch and says how that went;
//  - calls Tick at NextDeadline.
// With a journal (Coordinator::Options::durable), nothing is told before what it follows from is on
// disk. Pure; not thread-safe.
class DaemonCore {
 public:
  explicit DaemonCore(const Coordinator::Options& options, const LogReaders::Options& logs = {})
      : coordinator_(options),
        delivery_(options.durable),
        calls_(coordinator_, delivery_),
        logs_(coordinator_, logs) {}

  // Resumes a job of the daemon's last life, with what was in its store. Before any other call.
  // False: Coordinator::Restore.
  bool Restore(const JobRecord& job, TimePoint now);
  void RestoreEntry(std::string_view run_id, std::string_view key, std::string_view value);
  // Agents can reach this daemon from now on; see Coordinator.
  void BeginToServe(TimePoint now);

  // What happens; see Coordinator.
  void Hear(AgentId agent, const Event& event, TimePoint now);
  void Disconnected(AgentId agent, const std::string& why, TimePoint now);
  void AgentDied(const SessionToken& session, TimePoint now);
  void Drain(const std::string& why);
  void Close(const std::string& why, TimePoint now);
  // See StoreCalls.
  void Call(CallId id, const StoreCall& call);
  void Cancel(CallId id) { calls_.Cancel(id); }
  // Who reads what workers print. Nothing of it waits for the disk, as nothing follows from it.
  LogReaders& logs() { return logs_; }
  const LogReaders& logs() const { return logs_; }
  // Time has come to NextDeadline.
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  // What may be told now, one after the other.
  std::optional<Telling> NextTelling() { return delivery_.Take(); }
  std::optional<LogAction> NextLogAction() { return logs_.NextAction(); }
  // What has happened to jobs since the last call, for the log.
  std::vector<Transition> TakeLog() { return std::exchange(log_, {}); }

  // There is something to commit, and no commit is under way.
  bool NeedsCommit() const { return delivery_.NeedsCommit(); }
  // A commit of this is under way: Committed or DiskFull follows. After DiskFull it is tried again
  // from here.
  Batch BeginCommit(TimePoint now);
  void Committed() { delivery_.Committed(); }
  void DiskFull() { delivery_.DiskFull(); }
  bool disk_full() const { return delivery_.full(); }

  // No agent attends, nothing waits to be told or committed, and nobody reads the rest of a log.
  bool idle() const { return coordinator_.idle() && delivery_.idle() && !logs_.AnyEnds(); }
  std::size_t waiting_calls() const { return calls_.waiting(); }
  const Coordinator& coordinator() const { return coordinator_; }
  const Delivery& delivery() const { return delivery_; }

 private:
  // Takes what a call of the Coordinator brought about.
  void Follow(TimePoint now);
  // Those who read logs of jobs in which a round has started, or that have ended.
  void FollowLogs(const Outbox& outbox, TimePoint now);

  Coordinator coordinator_;
  Delivery delivery_;
  StoreCalls calls_;
  LogReaders logs_;
  std::vector<Transition> log_;
};

}  // namespace muster::rendezvous
