// Knows each caller by the certificate of his connection, and lets him do what his role may.
#pragma once

#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "rendezvous/fronts/complaints.h"
#include "rendezvous/fronts/permissions.h"
#include "rendezvous/identity/keyring.h"
#include "rendezvous/net/credentials.h"

namespace grpc {
class CallbackServerContext;
}  // namespace grpc

namespace muster::rendezvous {

// Lives on the loop's thread.
class DoorKeeper {
 public:
  explicit DoorKeeper(Credentials credentials);

  // A connection from that address ended before its first call: most likely as its other end has
  // not proven anything.
  void TurnedAway(const std::string& address);

  // Calls from that address were refused at the gate (net/call_gate.h).
  void TooManyCalls(const std::string& address, std::uint64_t refused);

  // A connection from that address was ended for calls that gRPC refused by itself.
  void HiddenCalls(const std::string& address, std::uint64_t calls);

  // Whose jobs the call may touch (Key::tenant); PermissionDenied, one sentence, when none. Where
  // callers do not prove a token, whoever is let in may do anything. While the call is open.
  absl::StatusOr<std::string> Admit(Rpc rpc, const grpc::CallbackServerContext& call);

  // Whose call it is; empty where there is one user, or if it is nobody's. While the call is open.
  std::string TenantOf(const grpc::CallbackServerContext& call);

  // A call was refused for another reason: "asks for a round that is over".
  void Complain(const grpc::CallbackServerContext& call, const std::string& what);

  // Calls refused since the beginning.
  std::uint64_t refused() const { return complaints_.total(); }

 private:
  // Null: nobody whose token counts now.
  const Principal* Identify(const std::string& certificate);

  const Credentials credentials_;
  // Who has which certificate, as found with `keys_`: checking a signature takes 0.1 ms.
  Keys keys_;
  std::unordered_map<std::string, Principal> known_;
  Complaints complaints_;
};

}  // namespace muster::rendezvous
