// A client of a job's store that waits for keys, with several calls at once over one connection,
// and may cancel them at any time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "test/rendezvous/cluster/network.h"
#include "test/rendezvous/cluster/world.h"
#include "test/rendezvous/simulation/process.h"

namespace muster::rendezvous {

class StoreWaiter final : public Network::Client {
 public:
  StoreWaiter(World world, int host, std::string run_id);
  ~StoreWaiter() override;

  void Begin() { Think(); }
  // The faults are over: every call made from now on over a new connection must be answered in
  // time, or its connection must end.
  void ExpectAnswers();

 private:
  // Network::Client.
  void OnConnected(ConnectionId connection) override;
  void OnRefused(ConnectionId connection) override;
  void OnMessage(ConnectionId connection, Downward message) override;
  void OnClosed(ConnectionId connection) override;

  void Think();
  void Connect();
  void Call();
  // More at once than one transaction of an etcd takes.
  void SetMany();
  StoreRequest Choose();
  void CancelLater(std::uint64_t number, Duration after);
  void GiveUpAfter(std::uint64_t number, Duration patience);
  void GoToNextPlace() { place_ = (place_ + 1) % world_.network.places(); }
  void Drop();

  World world_;
  const int host_;
  const std::string run_id_;
  const std::shared_ptr<Process> process_;

  int place_ = 0;
  int refused_ = 0;  // in a row
  ConnectionId connection_ = 0;
  bool connected_ = false;
  bool expects_answers_ = false;
  std::uint64_t last_call_ = 0;
  std::map<std::uint64_t, StoreRequest> calls_;  // neither answered nor cancelled
};

}  // namespace muster::rendezvous
