// The only path to the DaemonCore in a running daemon: gives each call the time, delivers what may
// be told, has the journal written, and lets time pass.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/async/timer.h"
#include "base/durations.h"
#include "base/lifetime.h"
#include "rendezvous/core/daemon_core.h"
#include "rendezvous/core/durable_outbox.h"
#include "rendezvous/core/log_readers.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/fronts/subscriptions.h"
#include "rendezvous/journal/journal.h"

namespace muster::rendezvous {

// Writes what a DaemonCore has to remember into the journal.

// Makes a core's batches into a journal's bytes.
//
// The record of a job of thousands takes tens of milliseconds to become bytes, in which the loop
// would hear nobody; so a thread does it, which is begun when it is first needed. What is quickly
// done is done at once, as a thread would make it slower. Lives on the loop's thread; its end waits
// for what is under way.
class BatchEncoder {
 public:
  explicit BatchEncoder(boost::asio::io_context& io) : io_(io) {}

  // `done` is called with the bytes: from within the call for a small batch, and otherwise from the
  // loop. One batch at a time.
  void Encode(Batch batch, std::function<void(JournalBatch)> done);

 private:
  boost::asio::io_context& io_;
  base::Lifetime lifetime_;
  std::optional<boost::asio::thread_pool> thread_;
};

// One batch at a time. A batch holds everything that has changed in a turn of the loop, or while
// the previous batch was written; of large ones a fifth of the loop's time is spent on at the most
// (CommitPace). Lives on the loop's thread.
//
//   idle --Follow, something to commit--> posted --the loop's turn is over, its time--> writing
//   writing --on disk--> idle     --the disk is full--> resting --a second--> writing
class JournalWriter {
 public:
  // What it has written since it was made.
  struct Figures {
    // From when a batch is made until the loop hears that it is on disk: so long
    // waits who may only be told then.
    base::DurationHistogram commits;
    // Batches for which there was no room on the disk.
    std::uint64_t failed = 0;
  };

  // `ended` is called when a batch is on disk, or found no room there, and the core may have more
  // to tell; `fatal` when it is not known what is on disk; both from the loop. Everything but the
  // journal must outlive the writer; the journal does not call back after the writer's end.
  JournalWriter(boost::asio::io_context& io, DaemonCore& core, Journal& journal,
                std::function<void()> ended, std::function<void(const absl::Status&)> fatal);

  // The core may have something to commit.
  void Follow();
  // Writes nothing more.
  void Stop();

  const Figures& figures() const { return figures_; }
  std::uint64_t bytes() const { return journal_.bytes(); }

 private:
  enum class State { kIdle, kPosted, kWriting, kResting, kStopped };

  void Write();
  void WriteAt(std::chrono::steady_clock::time_point when);
  void OnWritten(const absl::Status& status);

  boost::asio::io_context& io_;
  DaemonCore& core_;
  Journal& journal_;
  const std::function<void()> ended_;
  const std::function<void(const absl::Status&)> fatal_;

  State state_ = State::kIdle;
  std::chrono::steady_clock::time_point began_{};  // to write
  CommitPace pace_;
  BatchEncoder encoder_;
  Figures figures_;
  base::Timer timer_;
  base::Lifetime lifetime_;
};

// The loop itself.

// Lives on the loop's thread and is called only there. Fronts and in-process clients attach agents,
// hand in their events and get their directives through the sink; clients of stores hand in calls
// and get their answers. A sink or callback may call the DaemonLoop again: the results are
// delivered after what is being delivered. What thousands are to be told is told over several turns
// of the loop: others are heard in between, and beats are acknowledged before the rest of it.
//
// Decides nothing: DaemonCore says what may be told when. Between events the DaemonLoop sleeps: one
// timer is set to the core's next deadline.
class DaemonLoop {
 public:
  using Sink = std::function<void(const Directive&)>;
  using Watcher = std::function<void(const Transition&)>;
  using Answered = std::function<void(CallId, const absl::Status&)>;

  // `watcher` sees every transition (for the log); may be empty. `io` must outlive the DaemonLoop.
  DaemonLoop(boost::asio::io_context& io, Watcher watcher, const Coordinator::Options& options = {},
             const LogReaders::Options& logs = {});
  DaemonLoop(const DaemonLoop&) = delete;
  DaemonLoop& operator=(const DaemonLoop&) = delete;

  // For a durable daemon (Coordinator::Options), before any other call except Restore: from now on
  // every change goes into `journal`, which must outlive the DaemonLoop. `on_fatal` is told when
  // that is no longer possible: the daemon must end then, without another word to anybody.
  void UseJournal(Journal& journal, std::function<void(const absl::Status&)> on_fatal);
  // Nothing is told when `leads` says no: another daemon may have taken over, and what this one
  // says, though it waits for no journal, would contradict it. Asked before anything is told; the
  // process is to end then.
  void LeadBy(std::function<bool()> leads) { leads_ = std::move(leads); }
  // Resumes a job of the daemon's last life, with what was in its store. False:
  // Coordinator::Restore.
  bool Restore(JobRecord job);
  void RestoreEntry(std::string_view run_id, std::string_view key, std::string_view value);
  // Agents can reach it from now on. For what was restored no time passes before: nobody could have
  // come back.
  void BeginToServe();

  // A new connection of an agent, which gets its directives through `sink` until Detach.
  AgentId Attach(Sink sink);
  // The agent gets nothing more. The Coordinator is not told: the agent's Goodbye or Disconnected
  // comes first.
  void Detach(AgentId agent);

  // What happens; see Coordinator.
  void Hear(AgentId agent, const Event& event);
  void Disconnected(AgentId agent, const std::string& why);
  void AgentDied(const SessionToken& session);
  void Drain(const std::string& why);
  void Close(const std::string& why);

  // A call of a store (StoreCalls). `answered` is called once, unless the call is cancelled first:
  // when what it says is durable, which may be before this returns.
  CallId Call(const StoreCall& call, Answered answered);
  // Once this returns, nothing of the call is touched; no effect on one that was answered.
  void Cancel(CallId call);
  // Calls that wait for keys.
  std::size_t waiting_calls() const { return core_.waiting_calls(); }

  // Who reads what workers print, and who brings it.
  LogExchange& logs() { return logs_; }

  // From now on nothing happens: no event is heard, no time passes, nobody is told anything. For a
  // daemon with a journal that is about to end: the effects of its ending on its agents must not
  // get into what the next start reads.
  void Freeze();

  // Calls `done` from the loop as soon as no agent attends any job and everything has been told.
  void WhenIdle(std::function<void()> done);

  // Unavailable when another daemon may have taken over (LeadBy): what this one knows may be out of
  // date, and whoever asks does well to ask the next.
  absl::Status Standing() const;
  // NotFound, with a sentence, or as Standing says.
  absl::StatusOr<JobSnapshot> Describe(std::string_view run_id) const;
  absl::StatusOr<std::vector<JobSnapshot>> List() const;
  LeaseFigures Leases() const { return core_.coordinator().Leases(Now()); }
  std::uint64_t log_bytes_lost() const { return core_.coordinator().log_bytes_lost(); }
  // The last batch found no room on the disk.
  bool disk_full() const { return core_.disk_full(); }
  // Null without a journal.
  const JournalWriter* journal() const { return journal_.get(); }
  int agent_count() const { return core_.coordinator().agent_count(); }
  int job_count() const { return core_.coordinator().job_count(); }

 private:
  static TimePoint Now();
  JobSnapshot WithDisk(JobSnapshot job) const;
  // Lets the core hear of something, and carries out what follows.
  template <typename Happen>
  void Handle(const Happen& happen);
  // Delivers what may be told, has what must be written written, and resets the timer.
  void Follow();
  void Deliver();
  void DeliverRest();
  void Tell(const Outgoing& outgoing);
  void Tell(const StoreAnswer& answer);
  void CarryLogs();

  boost::asio::io_context& io_;
  const Watcher watcher_;

  DaemonCore core_;
  base::Timer timer_;
  AgentId next_agent_ = 1;
  std::map<AgentId, Sink> sinks_;
  CallId next_call_ = 1;
  std::map<CallId, Answered> calls_;
  std::unique_ptr<JournalWriter> journal_;
  LogExchange logs_;
  std::function<bool()> leads_;  // empty: always
  bool delivering_ = false;
  bool awaits_rest_ = false;
  bool carrying_ = false;
  bool frozen_ = false;
  std::vector<std::function<void()>> when_idle_;
  const base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
