// Knows each caller by the certificate of his connection, and lets him do what his role may, with
// the jobs of his tenant.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "rendezvous/fronts/access.h"
#include "rendezvous/fronts/complaints.h"
#include "rendezvous/fronts/driver.h"
#include "rendezvous/fronts/permissions.h"
#include "rendezvous/identity/keyring.h"
#include "rendezvous/net/credentials.h"

namespace muster::rendezvous {

// Lives on the loop's thread.
class DoorKeeper {
 public:
  // The jobs of a tenant, which are there from the first time that they are asked for; an error is
  // a sentence for the caller. The name is empty where there is only one.
  using DriverOf = std::function<absl::StatusOr<Driver*>(const std::string& tenant)>;

  DoorKeeper(Credentials credentials, DriverOf driver_of);

  // A connection from that address ended before its first call: most likely as its other end has
  // not proven anything.
  void TurnedAway(const std::string& address);

  // Calls from that address were refused at the gate (net/call_gate.h).
  void TooManyCalls(const std::string& address, std::uint64_t refused);

  // See Access. Where callers do not prove a token, whoever is let in may do anything.
  absl::StatusOr<Driver*> Admit(Rpc rpc, const grpc::CallbackServerContext& call);

  // Calls refused since the beginning.
  std::uint64_t refused() const { return complaints_.total(); }

 private:
  // Null: nobody whose token counts now.
  const Principal* Identify(const std::string& certificate);

  const Credentials credentials_;
  const DriverOf driver_of_;
  // Who has which certificate, as found with `keys_`: checking a signature takes 0.1 ms.
  Keys keys_;
  std::unordered_map<std::string, Principal> known_;
  Complaints complaints_;
};

}  // namespace muster::rendezvous
