// What an agent can say to its rendezvous, wherever that lives.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "rendezvous/core/directive.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// One agent's attendance. All methods are called on the loop's thread and return at once; all
// callbacks come from the loop, never from inside a method, and none after Leave's `left` or after
// OnLost.
class RendezvousClient {
 public:
  // Who is told. Must outlive the client.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnDirective(const Directive& directive) = 0;
    // The rendezvous cannot be reached yet; the client goes on trying. `trouble` says where, why
    // and for how long. At most once before OnLost or the first directive.
    virtual void OnTrouble(const std::string& trouble) = 0;
    // The rendezvous cannot be reached, or is gone: the attendance has ended. The message says what
    // was tried, where, and why it failed.
    virtual void OnLost(const absl::Status& status) = 0;
  };

  virtual ~RendezvousClient() = default;

  // Asks for a place in the job's next round: first of all, and again after each Stop.
  virtual void Join(const JoinRequest& request) = 0;
  // Reports on this node's workers in `round`.
  virtual void WorkersStarted(RoundNumber round) = 0;
  virtual void WorkersExited(RoundNumber round, const WorkersOutcome& outcome) = 0;
  // This node will leave once its workers are gone.
  virtual void Leaving(const std::string& reason) = 0;
  // This node leaves; its workers are gone. `left` is called when the rendezvous has heard it or
  // cannot be told. Last call.
  virtual void Leave(const std::string& reason, std::function<void()> left) = 0;
};

}  // namespace muster::rendezvous
