// The loop around an agent's session: a simulated connection and one timer, where
// rendezvous/client/grpc_client.cc has a stream and a timer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/client/agent_session.h"
#include "test/rendezvous/cluster/network.h"
#include "test/rendezvous/cluster/world.h"
#include "test/rendezvous/simulation/process.h"

namespace muster::rendezvous {

// Belongs to an agent's process, whose clock (`clock_offset`) the session uses.
class AgentSessionLoop final : public Network::Client {
 public:
  // Receives what a RendezvousClient's listener does, and Left.
  using Listener = std::function<void(const AgentSession::Action& action)>;

  AgentSessionLoop(World world, int host, std::shared_ptr<Process> process, Duration clock_offset,
                   Listener listener);
  ~AgentSessionLoop() override { Drop(); }

  void Join(const JoinRequest& request);
  void Say(Event event);
  void Leave(const std::string& reason);
  const SessionToken& session() const { return agent_session_.session(); }
  // Where the last connection led to.
  int place() const { return place_; }

 private:
  // Network::Client. While the process is stopped, these wait.
  void OnConnected(ConnectionId connection) override;
  void OnRefused(ConnectionId connection) override;
  void OnMessage(ConnectionId connection, Downward message) override;
  void OnClosed(ConnectionId connection) override;

  TimePoint Now() const { return world_.scheduler.now() + clock_offset_; }
  void Act();
  void ArmTimer();
  void Connect(const AgentSession::Connect& connect);
  void Send(Event event);
  void Probe(const SessionToken& session);
  void Count(const AgentSession::Action& action);
  void CheckDeadline(const AgentSession::Action& action);
  // What gRPC does: its time limit for connecting, and its pings.
  void LimitAttempt();
  void Ping();
  void Drop();
  void Ended(const ConnectionError& error);

  World world_;
  const int host_;
  const std::shared_ptr<Process> process_;
  const Duration clock_offset_;
  const Listener listener_;

  AgentSession agent_session_;
  bool acting_ = false;
  std::uint64_t number_ = 0;  // the session's number of the connection
  int place_ = 0;
  ConnectionId connection_ = 0;  // 0: none
  bool connected_ = false;
  std::vector<Event> unsent_;  // until connected
  TimePoint last_heard_{};
  std::optional<TimePoint> armed_for_;
  SessionToken welcomed_;  // the last session that was welcomed
  int assignments_told_ = 0;
  std::optional<TimePoint> deadline_;  // the last one reported
};

}  // namespace muster::rendezvous
