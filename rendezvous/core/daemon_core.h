// Everything a daemon decides: its jobs, the calls to their stores, and when each message may
// leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "base/check.h"
#include "rendezvous/core/coordinator.h"
#include "rendezvous/core/durable_outbox.h"
#include "rendezvous/core/job/key_value_store.h"
#include "rendezvous/core/log_readers.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/record.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// The calls of the stores' clients, from arrival until their answers may be sent.

struct StoreCall {
  // What to do with the job's store, at once or when the wait is over. It may write its result
  // where the caller wants it; its status is the answer.
  using Body = std::function<absl::Status(KeyValueStore& store)>;
  // All of these keys must exist. Only read during the call.
  struct Wait {
    std::vector<std::string_view> keys;
    std::optional<TimePoint> deadline;
  };

  std::string run_id;
  Body body;
  // It changes the store: while the disk is full it is refused at once, and nothing changes.
  bool writes = false;
  // What must happen before the body runs: one of these, or neither.
  std::optional<Wait> wait;
  std::optional<Arrival> arrival;  // this many callers must be at the barrier; see
                                   // KeyValueStore::Meet
};

// A call is in one of these states, and leaves by the first that happens:
//
//   waiting --its keys exist, its barrier is complete, its deadline passes, its caller calls
//   again, or the job is gone--> answered
//   answered (in the DurableOutbox, until the answer is durable) --sent--> gone
//   answered --the disk is full, and the client did not ask to wait--> an error is sent
//   either --Cancel--> gone: its body is not called (again), and its answer goes to no one
//
// Cancelling changes only who waits, and so who counts at a barrier. Pure; not thread-safe.
// `coordinator` and `durable_outbox` must outlive it.
class StoreCalls {
 public:
  // Waiting calls may name at most `most_waiting_bytes` in total, plus 64 for each key.
  StoreCalls(Coordinator& coordinator, DurableOutbox& durable_outbox,
             std::size_t most_waiting_bytes = limits::kWaitingBytes.most)
      : most_waiting_bytes_(most_waiting_bytes),
        coordinator_(coordinator),
        durable_outbox_(durable_outbox) {}
  StoreCalls(const StoreCalls&) = delete;
  StoreCalls& operator=(const StoreCalls&) = delete;

  // A new call. Its answer, and those of the calls it wakes, go into the DurableOutbox.
  void Call(CallId id, const StoreCall& call);
  // Its client is gone. After this returns, nothing that the call refers to is touched.
  void Cancel(CallId id);

  // The job and its store no longer exist: the job's calls are answered with Aborted.
  void DropStore(const std::string& run_id);

  // Times out the waits whose deadline has passed.
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  // Waiting calls, over all jobs.
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Waiting {
    std::string run_id;
    WaiterId waiter = 0;
    StoreCall::Body body;
    std::size_t bytes = 0;  // of the keys it names
    // Set for a call at a barrier.
    std::string barrier;
    std::uint64_t count = 0;
  };

  // The store, or why there is none for this call.
  absl::StatusOr<KeyValueStore*> Find(const std::string& run_id) const;
  // Reports the changes, and answers the calls whose wait has ended. Call it after each call to a
  // store.
  void Settle(const std::string& run_id, KeyValueStore& store);
  // The answer to a call whose wait has ended.
  static absl::Status Outcome(const Waiting& waiting, const CompletedWait& completed,
                              KeyValueStore& store);
  void Answer(CallId id, absl::Status status, bool patient) {
    durable_outbox_.Put(StoreAnswer{id, std::move(status), patient});
  }

  // How much a waiting call takes of the limit on such bytes.
  static std::size_t BytesOf(const StoreCall& call);
  void Forget(const Waiting& waiting) {
    MUSTER_CHECK(waiting_bytes_ >= waiting.bytes);
    waiting_bytes_ -= waiting.bytes;
  }

  const std::size_t most_waiting_bytes_;
  std::size_t waiting_bytes_ = 0;
  Coordinator& coordinator_;
  DurableOutbox& durable_outbox_;
  std::map<CallId, Waiting> waiting_;
  // By run id and wait number; only jobs that have calls.
  std::map<std::string, std::map<WaiterId, CallId>, std::less<>> by_job_;
};

// What a commit writes to a journal, all or nothing; values are as of the start of the commit.
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

// The Coordinator and everything around it that every daemon, shipped or simulated, needs. Its
// owner passes in each event with `now`, and then
//  - sends what NextMessage returns, until that returns nothing;
//  - does what NextLogAction returns, in the same way, if logs are being read;
//  - if NeedsCommit, writes a Batch and reports the outcome;
//  - calls Tick at NextDeadline.
// With a journal (Coordinator::Options::durable), nothing is sent before the change it follows from
// is on disk. Pure; not thread-safe.
class DaemonCore {
 public:
  explicit DaemonCore(const Coordinator::Options& options, const LogReaders::Options& logs = {})
      : coordinator_(options),
        durable_outbox_(options.durable),
        calls_(coordinator_, durable_outbox_),
        logs_(coordinator_, logs) {}

  // Resumes a job of the daemon's last life, and what was in its store. Before any other call.
  // False: see Coordinator::Restore.
  bool Restore(const JobRecord& job, TimePoint now);
  void RestoreEntry(std::string_view run_id, std::string_view key, std::string_view value);
  // Agents can reach this daemon from now on; see Coordinator.
  void BeginToServe(TimePoint now) { coordinator_.BeginToServe(now); }

  // Events; see Coordinator.
  void Hear(AgentId agent, const Event& event, TimePoint now);
  void Disconnected(AgentId agent, const std::string& why, TimePoint now);
  void AgentDied(const SessionToken& session, TimePoint now);
  void Drain(const std::string& why) { coordinator_.Drain(why); }
  void Close(const std::string& why, TimePoint now);
  // See StoreCalls.
  void Call(CallId id, const StoreCall& call) { calls_.Call(id, call); }
  void Cancel(CallId id) { calls_.Cancel(id); }
  // Readers of worker output. Reading does not wait for the disk, as it changes no state.
  LogReaders& logs() { return logs_; }
  const LogReaders& logs() const { return logs_; }
  // The time is at or after NextDeadline.
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  // What may be sent now, one at a time.
  std::optional<OutboundMessage> NextMessage() { return durable_outbox_.Take(); }
  std::optional<LogAction> NextLogAction() { return logs_.NextAction(); }
  // What happened to jobs since the last call, for the log.
  std::vector<Transition> TakeLog() { return std::exchange(log_, {}); }

  // True if there is something to commit, and no commit is under way.
  bool NeedsCommit() const { return durable_outbox_.NeedsCommit(); }
  // Starts a commit of this batch: Committed or DiskFull follows. After DiskFull the commit is
  // retried from here.
  Batch BeginCommit(TimePoint now);
  void Committed() { durable_outbox_.Committed(); }
  void DiskFull() { durable_outbox_.DiskFull(); }
  bool disk_full() const { return durable_outbox_.full(); }

  // True if no agent attends, nothing waits to be sent or committed, and no reader is finishing a
  // log.
  bool idle() const { return coordinator_.idle() && durable_outbox_.idle() && !logs_.AnyEnds(); }
  std::size_t waiting_calls() const { return calls_.waiting(); }
  const Coordinator& coordinator() const { return coordinator_; }
  const DurableOutbox& durable_outbox() const { return durable_outbox_; }

 private:
  // Processes what a call to the Coordinator produced.
  void Follow(TimePoint now);
  // Updates the readers of jobs in which a round has started, or that have ended.
  void FollowLogs(const Outbox& outbox, TimePoint now);

  Coordinator coordinator_;
  DurableOutbox durable_outbox_;
  StoreCalls calls_;
  LogReaders logs_;
  std::vector<Transition> log_;
};

}  // namespace muster::rendezvous
