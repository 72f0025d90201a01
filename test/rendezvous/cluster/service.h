// What a daemon's process does while it serves: the real DaemonCore behind simulated connections.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "rendezvous/core/daemon_core.h"
#include "rendezvous/journal/journal.h"
#include "test/rendezvous/cluster/disk.h"
#include "test/rendezvous/cluster/network.h"
#include "test/rendezvous/cluster/store_desk.h"
#include "test/rendezvous/cluster/world.h"
#include "test/rendezvous/simulation/process.h"
#include "test/rendezvous/simulation/sim_clock.h"

namespace muster::rendezvous {

// Deliberate mistakes in the code that drives the core, one per mutant.
struct DaemonMutations {
  bool answers_before_commit = false;
  bool reuses_incarnations = false;
  bool forgets_store = false;  // does not restore entries
  // Where daemons take turns.
  bool reads_stale = false;  // at a take-over
  bool speaks_when_it_does_not_lead = false;
  bool grants_short_leases = false;  // to agents
};

// For the checks only: what daemons have heard in all their lives.
struct KnownSessions {
  std::map<SessionToken, JoinRequest> joins;
  std::map<SessionToken, ConnectionId> newest;  // connection
};

// Combines the core as DaemonLoop, JournalWriter and the fronts do. Belongs to one life of a
// process, and does nothing when that is dead. Destroyed before the next life begins.
class Service final : public Network::Server {
 public:
  struct Options {
    Coordinator::Options core;
    DaemonMutations mutations;
    // Agents are told how to know who answers a probe.
    bool is_knocked_at = true;
  };
  // What it needs of its daemon.
  struct Owner {
    // Writes the batch, and calls `done` later, never before returning. One at a time.
    std::function<void(DiskBatch batch, std::function<void(DiskOutcome)> done)> write;
    // It is not known what was written. The process is to end, without another word.
    std::function<void()> on_broken;
    // DaemonLoop::LeadBy; empty: always.
    std::function<bool()> leads{};
    // Something is about to be told to somebody; may be empty.
    std::function<void()> on_word{};
  };
  // What `sessions` and `clock` refer to must outlive it.
  Service(World world, std::shared_ptr<Process> process, const SimClock& clock,
          KnownSessions& sessions, const Options& options, Owner owner);

  // Before anything else: what was read at the start. `written`: for the checks, what that was made
  // from.
  void Restore(const JournalContents& contents, const Disk& written);
  // Agents can connect.
  void BeginToServe();

  const DaemonCore& core() const { return core_; }

 private:
  // The front's end of a connection.
  struct Front {
    SessionToken session;
    std::string run_id;
    std::string node_id;
    Duration lease{};
    bool attends = false;  // the Coordinator may know it
    TimePoint last_heard{};
  };

  // Network::Server.
  void OnAccepted(ConnectionId connection) override;
  void OnMessage(ConnectionId connection, Upward message, TimePoint sent) override;
  void OnClosed(ConnectionId connection) override;

  TimePoint Now() const { return clock_.Now(); }
  // Closes connections that have been silent for long, as the transport's pings would.
  void Sweep();
  void Take(ConnectionId connection, const Upward& message, TimePoint sent);
  // The record of a job that has not ended.
  std::optional<JobRecord> RecordOf(const std::string& run_id) const;
  void Know(ConnectionId connection, const JoinRequest& join);
  void HandOver(AgentId agent, Front& front, const Event& event);
  // Like DaemonLoop.
  void Follow(std::optional<TimePoint> sent);
  void Tell(const OutboundMessage& message);
  void TellAgent(const Outgoing& outgoing);
  // Like JournalWriter.
  void CommitSoon();
  void Commit();
  void OnWritten(DiskOutcome outcome);
  void ArmTimer();

  World world_;
  const std::shared_ptr<Process> process_;
  const SimClock& clock_;
  KnownSessions& sessions_;
  const Options options_;
  const Owner owner_;

  DaemonCore core_;
  StoreDesk store_;
  std::map<ConnectionId, Front> fronts_;
  std::optional<TimePoint> timer_due_;
  // A commit is about to begin, is in progress, or will be retried.
  bool commits_ = false;
  // DaemonLoop::Freeze: it leads no longer.
  bool frozen_ = false;
};

}  // namespace muster::rendezvous
