// The daemon: the real DaemonCore on a simulated disk and network.
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

// Deliberate mistakes in the code that drives the core, one per mutant.
struct DaemonMutations {
  bool answers_before_commit = false;
  bool reuses_incarnations = false;
  bool forgets_store = false;  // does not restore entries
};

class Daemon final : public Network::Server {
 public:
  struct Options {
    bool durable = true;
    DaemonMutations mutations;
  };
  Daemon(World world, Disk& disk, const Options& options);
  ~Daemon() override { Kill(false, false); }

  // Starts the process, which listens after `until_it_listens`. It must not be running.
  void Start(Duration until_it_listens);
  // `keeper`: its keeper keeps running, unless the host loses power.
  void Kill(bool power_loss, bool keeper);
  bool runs() const { return process_ != nullptr; }
  void Halt(Duration duration);
  // Ends a Halt().
  void Continue();
  // Whether everything has ended: no agent attends, and nothing waits.
  bool idle() const { return runs() && core_->idle(); }
  // Null while it is not running.
  const Coordinator* coordinator() const { return core_ ? &core_->coordinator() : nullptr; }
  TimePoint Now() const { return world_.scheduler.now() + clock_offset_; }
  void CloseAll();

  // Called when the daemon ends by itself because its disk is broken.
  std::function<void()> on_ended;

 private:
  // A call to a store, and the key's value when it was answered.
  struct OpenCall {
    ConnectionId connection = 0;
    StoreRequest request;
    StoreReply reply;
    std::string value;
  };
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

  // The answer of its keeper, which holds the port while the daemon is dead.
  std::optional<KnockWord> AnswerKnock() const;

  void Restore();
  // Closes connections that have been silent for long, as the transport's pings would.
  void Sweep();
  void Take(ConnectionId connection, const Upward& message, TimePoint sent);
  // The record of a job that has not ended.
  std::optional<JobRecord> RecordOf(const std::string& run_id) const;
  void Know(ConnectionId connection, const JoinRequest& join);
  void HandOver(AgentId agent, Front& front, const Event& event);
  void Serve(ConnectionId connection, const StoreRequest& request);
  void Cancel(ConnectionId connection, std::uint64_t number);
  absl::Status Do(OpenCall& call, KeyValueStore& store);
  // Like Driver.
  void Follow(std::optional<TimePoint> sent);
  void Tell(const Telling& telling);
  void TellAgent(const Outgoing& outgoing);
  void TellStoreClient(const StoreAnswer& answer);
  // Like JournalWriter.
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
  // When it died and left a keeper on its host. Nothing if it is alive or the host lost power.
  std::optional<TimePoint> keeper_since_;
  std::optional<DaemonCore> core_;
  CallId last_call_ = 0;
  std::map<CallId, OpenCall> calls_;
  // Calls that were cancelled before they arrived.
  std::set<std::pair<ConnectionId, std::uint64_t>> cancelled_early_;
  // The Join of every session that ever joined; only for the checks.
  std::map<SessionToken, JoinRequest> joins_;
  // The latest connection of each session; only for the checks.
  std::map<SessionToken, ConnectionId> newest_;
  std::map<ConnectionId, Front> fronts_;
  std::optional<TimePoint> timer_due_;
  // A commit is about to begin, is in progress, or will be retried.
  bool commits_ = false;
};

}  // namespace muster::rendezvous
