// A client of the jobs' stores on one host. Makes one call after another, and resends one only
// where that is safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "test/rendezvous/cluster/network.h"
#include "test/rendezvous/cluster/world.h"
#include "test/rendezvous/simulation/process.h"

namespace muster::rendezvous {

class SimStoreClient final : public Network::Client {
 public:
  SimStoreClient(World world, int host, std::string run_id);
  ~SimStoreClient() override;

  void Begin() { Think(); }

 private:
  // Network::Client.
  void OnConnected(ConnectionId connection) override;
  void OnRefused(ConnectionId connection) override;
  void OnMessage(ConnectionId connection, Downward message) override;
  void OnClosed(ConnectionId connection) override;

  void Think();
  void Call();
  void Choose();
  // No answer will arrive on this connection.
  void GiveUp();
  void GoToNextPlace() { place_ = (place_ + 1) % world_.network.places(); }
  void Drop();

  World world_;
  const int host_;
  const std::string run_id_;
  const std::string name_;  // unique among all clients ever
  const std::shared_ptr<Process> process_;

  // Where the daemon was last, or is looked for next; and where it was looked for in a row.
  int place_ = 0;
  int refused_ = 0;
  ConnectionId connection_ = 0;
  bool connected_ = false;
  std::uint64_t last_call_ = 0;
  std::optional<StoreChecks::Call> call_;  // in progress
  std::int64_t last_number_ = 0;           // written by this client
  std::string step_from_;                  // the value that CompareSet last found
  // An old copy of a call may still be in transit, so this host continues with other key names.
  int generation_ = 0;
};

}  // namespace muster::rendezvous
