// An agent's client, as rendezvous/client/grpc_client.cc is one: keeps the attendance over one
// connection after another, and knows when the agent's lease ends (the real LeaseKeeper).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/client/lease_keeper.h"
#include "test/rendezvous/cluster/mutations.h"
#include "test/rendezvous/cluster/network.h"
#include "test/rendezvous/cluster/process.h"
#include "test/rendezvous/cluster/world.h"

namespace muster::rendezvous {

// Belongs to an agent's process, on whose clock (`clock_offset`) it lives. Its methods and members
// are GrpcClient's, but for what gRPC does there. Its patience is longer than any outage here.
class SimClient final : public Network::Client {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnDirective(const Directive& directive) = 0;
    virtual void OnDeadline(std::optional<TimePoint> deadline) = 0;
    virtual void OnFenced(const std::string& why) = 0;
    // Nothing more comes of this client.
    virtual void OnLost(const std::string& why) = 0;
  };

  SimClient(World world, int host, std::shared_ptr<Process> process, Duration clock_offset,
            const AgentMutations& mutations, Listener& listener);
  ~SimClient() override { Drop(); }

  void Join(JoinRequest request);
  const SessionToken& session() const { return session_; }
  // To be said now, and again on each connection until the next Join.
  void Say(Event message);
  // `left` is called when the daemon has heard it or cannot be told. Last call.
  void Leave(const std::string& reason, std::function<void()> left);

 private:
  // Network::Client; each waits for the process.
  void OnConnected(ConnectionId connection) override;
  void OnRefused(ConnectionId connection) override;
  void OnMessage(ConnectionId connection, Downward message) override;
  void OnClosed(ConnectionId connection) override;

  TimePoint Now() const { return world_.scheduler.now() + clock_offset_; }
  // Runs `task` in the process after `delay`, unless this client is done by then.
  void After(Duration delay, std::function<void()> task);
  void NewSession();
  void Connect();
  // Over the connection, once that is there.
  void Send(Event message);
  void HandleDirective(const Directive& directive);
  void HandleWelcome(const Welcome& welcome);
  void HandleEvicted();
  void HandleBroken(bool refused);
  void TryAgain();
  void Ping();
  void ScheduleBeat();
  void MoveDeadline();
  void ArmWatch();
  std::optional<TimePoint> DoubtfulFrom() const;
  void Watch();
  void Drop();
  void LetGo();
  void Left();

  World world_;
  const int host_;
  const std::shared_ptr<Process> process_;
  const Duration clock_offset_;
  const AgentMutations& mutations_;
  Listener& listener_;

  SessionToken session_;
  std::uint64_t number_ = 0;  // of the connection: how many there were
  std::vector<Event> said_;   // since the last Join, which is the first
  bool answered_ = false;     // the daemon has said something, at one time
  bool attended_ = false;     // it knows our session
  bool durable_ = false;
  Duration lease_{};
  Duration keep_alive_{};
  LeaseKeeper keeper_;
  std::optional<TimePoint> fenced_for_;  // the deadline that was told

  ConnectionId connection_ = 0;  // 0: none
  bool connected_ = false;
  bool open_ = false;          // what is said may be sent on it
  std::vector<Event> unsent_;  // until it is connected
  TimePoint attempt_began_{};
  TimePoint asked_at_{};  // when the Join or Resume was sent that Welcome answers
  TimePoint last_heard_{};

  bool pausing_ = false;
  Duration pause_{};
  // Timers, moved by counting: one that finds another number was cancelled.
  std::uint64_t beats_ = 0;
  std::uint64_t watches_ = 0;

  std::function<void()> left_;
  bool over_ = false;  // nothing comes of it any more
};

}  // namespace muster::rendezvous
