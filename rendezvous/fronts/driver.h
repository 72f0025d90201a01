// The one path to the Coordinator in a running daemon: gives each call the time, delivers what
// comes out of it once that is durable, and lets time pass.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/status.h"
#include "rendezvous/core/commit_gate.h"
#include "rendezvous/core/coordinator.h"
#include "rendezvous/core/directive.h"
#include "rendezvous/fronts/journal_writer.h"

namespace muster::rendezvous {

// Lives on the loop's thread and is called only there. Fronts and in-process clients attach agents,
// hand their events in and get their directives by the sink; a sink that calls the Driver again is
// in order: what comes of it is delivered after what is being delivered.
//
// With a journal, what follows from a change is told once the change is on disk (CommitGate); one
// commit holds all that has changed in a turn of the loop. Acknowledgements of keep-alives are told
// at once: a slow disk must not cost anybody its lease.
//
// Between events the Driver sleeps: one timer is set to the Coordinator's next deadline.
class Driver {
 public:
  using Sink = std::function<void(const Directive&)>;
  using Watcher = std::function<void(const Transition&)>;

  // `watcher` sees every transition (for the log); may be empty. `io` must outlive the Driver.
  Driver(boost::asio::io_context& io, Watcher watcher, const Coordinator::Options& options = {});
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // From now on every change goes into `journal`, which must outlive the Driver. `on_fatal` is told
  // when that is no longer possible: the daemon must end then, without another word to anybody.
  // Before any other call but Restore.
  void UseJournal(Journal& journal, std::function<void(const absl::Status&)> on_fatal);
  // Goes on with a job of the daemon's last life, and with what was in its store.
  void Restore(const JobRecord& job);
  void RestoreEntry(std::string_view run_id, std::string_view key, std::string_view value);

  // A new connection of an agent that will be told its directives by `sink`, until Detach.
  AgentId Attach(Sink sink);
  // It gets nothing more. Does not tell the Coordinator: its Goodbye or Disconnected comes first.
  void Detach(AgentId agent);

  // Events, as the Coordinator has them.
  void Hear(AgentId agent, const Event& event);
  void Disconnected(AgentId agent, const std::string& why);
  void AgentDied(const SessionToken& session);
  void Drain(const std::string& why);
  void Close(const std::string& why);

  // From now on nothing happens any more: no event is heard, no time passes, nobody is told
  // anything. For a daemon with a journal that is about to end: what its ending looks like to its
  // agents must not get into what the next start goes on from.
  void Freeze();

  // Sets who is told that a job, and with it its store, is no more.
  void OnForgotten(std::function<void(const std::string& run_id)> told) {
    on_forgotten_ = std::move(told);
  }

  // Calls `done` from the loop as soon as no agent attends any job.
  void WhenIdle(std::function<void()> done);

  std::optional<JobSnapshot> Describe(std::string_view run_id) const;
  std::vector<JobSnapshot> List() const;
  int agent_count() const { return coordinator_.agent_count(); }
  int job_count() const { return coordinator_.job_count(); }

  // The job's store, or null. Whoever may have changed it says so with StoreChanged, and answers
  // from within WhenDurable.
  KeyValueStore* FindStore(std::string_view run_id);
  void StoreChanged(std::string_view run_id);
  // Calls `tell` once everything that has happened by now is durable, which may be at once.
  void WhenDurable(std::function<void()> tell);
  // Why nothing may be written to stores now; OK when it may.
  absl::Status MayWrite() const;

 private:
  using Telling = std::variant<Outgoing, std::function<void()>>;

  static TimePoint Now();
  // Has the Coordinator hear of something, and follows it.
  template <typename Call>
  void Handle(const Call& call);
  // Takes what the last call brought about, delivers what may be told, and sets the timer anew.
  void Follow();
  void TakeOutbox();
  void Deliver();
  void Tell(const Outgoing& outgoing);
  void CommitSoon();
  void Commit();
  void ArmTimer();

  boost::asio::io_context& io_;
  const Watcher watcher_;

  Coordinator coordinator_;
  boost::asio::steady_timer timer_;
  std::optional<TimePoint> timer_due_;
  AgentId next_agent_ = 1;
  std::map<AgentId, Sink> sinks_;
  CommitGate<Telling> gate_;
  bool delivering_ = false;
  std::unique_ptr<JournalWriter> journal_;
  std::function<void(const absl::Status&)> on_fatal_;
  bool commit_posted_ = false;
  bool frozen_ = false;
  // Handlers that find it gone do nothing.
  std::shared_ptr<void> alive_ = std::make_shared<int>();
  std::function<void(const std::string&)> on_forgotten_;
  std::vector<std::function<void()>> when_idle_;
};

}  // namespace muster::rendezvous
