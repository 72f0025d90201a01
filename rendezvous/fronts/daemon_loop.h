// The only path to the DaemonCore in a running daemon: gives each call the time, delivers what may
// be told, has the journal written, and lets time pass.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/async/timer.h"
#include "base/lifetime.h"
#include "rendezvous/core/daemon_core.h"
#include "rendezvous/core/log_readers.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/fronts/journal_writer.h"
#include "rendezvous/fronts/subscriptions.h"

namespace muster::rendezvous {

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
