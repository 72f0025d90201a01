// A client of the jobs' stores on one host: one call after another, each sent again only where that
// is safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "test/rendezvous/cluster/network.h"
#include "test/rendezvous/cluster/process.h"
#include "test/rendezvous/cluster/world.h"

namespace muster::rendezvous {

class StoreClient final : public Network::Client {
 public:
  StoreClient(World world, int host, std::string run_id);
  ~StoreClient() override;

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
  // No answer will come over this connection.
  void GiveUp();
  void Drop();

  World world_;
  const int host_;
  const std::string run_id_;
  const std::string name_;  // no other client, before or after, has the same
  const std::shared_ptr<Process> process_;

  ConnectionId connection_ = 0;
  bool connected_ = false;
  std::uint64_t last_call_ = 0;
  std::optional<StoreChecks::Call> call_;  // under way
  std::int64_t last_number_ = 0;           // written by this client
  std::string step_from_;                  // what CompareSet was last seen to find
  // An old copy of a call may still be on its way: this host goes on with keys of other names.
  int generation_ = 0;
};

}  // namespace muster::rendezvous
