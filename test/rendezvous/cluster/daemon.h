// The daemon's host: the real DaemonCore on the simulated disk and network.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "rendezvous/core/daemon_core.h"
#include "test/rendezvous/cluster/disk.h"
#include "test/rendezvous/cluster/network.h"
#include "test/rendezvous/cluster/process.h"
#include "test/rendezvous/cluster/world.h"

namespace muster::rendezvous {

// Mistakes of whoever drives the core, each made on purpose in a mutant.
struct DaemonMutations {
  bool answers_before_commit = false;
  bool reuses_incarnations = false;
  bool forgets_store = false;  // entries are not restored
};

class Daemon final : public Network::Server {
 public:
  struct Options {
    bool durable = true;
    DaemonMutations mutations;
  };
  Daemon(World world, Disk& disk, const Options& options);
  ~Daemon() override { Kill(false, false); }

  // Starts the process, which listens after a while. Not while it runs.
  void Start(Duration until_it_listens);
  // `keeper`: its keeper goes on, unless the host loses its power.
  void Kill(bool power_loss, bool keeper);
  bool runs() const { return process_ != nullptr; }
  void Halt(Duration duration);
  // Ends a halt.
  void Continue();
  // Everything has an end: nobody attends, nothing waits.
  bool idle() const { return runs() && core_->idle(); }
  // Null while it does not run.
  const Coordinator* coordinator() const { return core_ ? &core_->coordinator() : nullptr; }
  TimePoint Now() const { return world_.scheduler.now() + clock_offset_; }
  void CloseAll();

  // The daemon ended by itself, as its disk is broken.
  std::function<void()> on_ended;

 private:
  // A call of a store, and what the key had when it was answered.
  struct OpenCall {
    ConnectionId connection = 0;
    StoreRequest request;
    StoreReply reply;
    std::string value;
  };
  // A front's side of a connection.
  struct Front {
    SessionToken session;
    std::string run_id;
    std::string node_id;
    Duration lease{};
    bool attends = false;  // the Coordinator may know of it
    TimePoint last_heard{};
  };

  // Network::Server.
  void OnAccepted(ConnectionId connection) override;
  void OnMessage(ConnectionId connection, Upward message, TimePoint sent) override;
  void OnClosed(ConnectionId connection) override;

  // Its keeper, which holds the port while it is dead.
  std::optional<KnockWord> AnswerKnock() const;

  void Restore();
  // Connections over which nothing comes for long are dead: the transport's pings find that.
  void Sweep();
  void Take(ConnectionId connection, const Upward& message, TimePoint sent);
  // Of a job that has not come to its end.
  std::optional<JobRecord> RecordOf(const std::string& run_id) const;
  void Know(ConnectionId connection, const JoinRequest& join);
  void HandOver(AgentId agent, Front& front, const Event& event);
  void Serve(ConnectionId connection, const StoreRequest& request);
  void Cancel(ConnectionId connection, std::uint64_t number);
  absl::Status Do(OpenCall& call, KeyValueStore& store);
  // As Driver has it.
  void Follow(std::optional<TimePoint> sent);
  void Tell(const Telling& telling);
  void TellAgent(const Outgoing& outgoing);
  void TellStoreClient(const StoreAnswer& answer);
  // As JournalWriter has it.
  void CommitSoon();
  void Commit();
  void ArmTimer();

  World world_;
  Disk& disk_;
  const Options options_;

  Duration clock_offset_{};
  std::shared_ptr<Process> process_;
  std::uint64_t life_ = 0;
  bool listens_ = false;
  // When it died and left a keeper on its host; nothing: it did not, or has lost its power.
  std::optional<TimePoint> keeper_since_;
  std::optional<DaemonCore> core_;
  CallId last_call_ = 0;
  std::map<CallId, OpenCall> calls_;
  // Calls that were cancelled before they came.
  std::set<std::pair<ConnectionId, std::uint64_t>> cancelled_early_;
  // Of every session that ever joined, what it said: for the checks alone.
  std::map<SessionToken, JoinRequest> joins_;
  // The newest connection that each session came by, for the checks, too.
  std::map<SessionToken, ConnectionId> newest_;
  std::map<ConnectionId, Front> fronts_;
  std::optional<TimePoint> timer_due_;
  // A commit is to begin, is under way, or is to be tried again.
  bool commits_ = false;
};

}  // namespace muster::rendezvous
