// What an agent can say to its rendezvous, wherever that is.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/status/status.h"

#include "rendezvous/core/values/log_request.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/progress.h"
#include "rendezvous/core/values/types.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"

namespace muster::rendezvous {

// What an agent brings to its daemon for somebody who reads what its workers print. One delivery,
// from LogWanted until it is over. Lives on the loop's thread; handlers are called from the loop,
// never from within a method, and may destroy it. Destroying it cuts it off.
class LogDelivery {
 public:
  struct Handlers {
    // One more part may be sent: the reader has taken what came before, but for what is on its way
    // (limits::kLogChunkBytes a few times).
    std::function<void()> on_ready;
    // The last call: all has been brought, nobody wants any more, or the connection broke.
    std::function<void()> on_over;
  };

  virtual ~LogDelivery() = default;

  // A text of at most limits::kLogChunkBytes, or a notice. Once for each on_ready.
  virtual void Send(LogPart part) = 0;
  // Instead of Send: this was all. on_over follows.
  virtual void Finish() = 0;
};

// One agent's session of a job, over several connections if need be; after Evicted, the next
// Join begins another session. All methods are called on the loop's thread and return at once;
// all callbacks come from the loop, never from inside a method, and none after Leave's `left` or
// after OnLost.
class RendezvousClient {
 public:
  // Receives what the rendezvous says. Must outlive the client.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnDirective(const Directive& directive) = 0;
    // The rendezvous cannot be reached yet; the client keeps trying. `trouble` says where, why and
    // for how long. At most once before OnLost or the first directive.
    virtual void OnTrouble(const std::string& trouble) = 0;
    // The connection to the rendezvous broke, for the reason given. The client tries to come back,
    // and sends then what is said meanwhile. Workers continue until OnFenced.
    virtual void OnOutOfTouch(const std::string& cause) = 0;
    // It has come back, after `outage`.
    virtual void OnBackInTouch(Duration outage) = 0;
    // Workers must not outlive this time, even if this process stands still, unless it is moved
    // before then: after it the rendezvous may give this node's place away. nullopt: there is no
    // limit.
    virtual void OnDeadline(std::optional<TimePoint> deadline) = 0;
    // That time is about to come: the workers must be killed now. The client keeps trying.
    virtual void OnFenced(const std::string& why) = 0;
    // What the workers of this node have told since the last call; with `all`, what they have told
    // in this round: with each keep-alive, or soon after ProgressMade.
    virtual Progress TakeProgress(bool /*all*/) { return {}; }
    // The rendezvous cannot be reached, or is gone: the session has ended. The message says what
    // was tried, where, and why it failed.
    virtual void OnLost(const absl::Status& status) = 0;

    // What the client adds to what it says, asked each time that it does. Bytes of its workers'
    // output that log files did not take, since it began.
    virtual std::uint64_t LogBytesLost() const { return 0; }
    // When the worker failed whose failure was reported last, by this process's clock; nullopt:
    // that is not known.
    virtual std::optional<TimePoint> FailedAt() const { return std::nullopt; }
  };

  virtual ~RendezvousClient() = default;

  // Asks for a place in the job's next round: before anything else, and again after each Stop or
  // Evicted. The client adds the session.
  virtual void Join(const JoinRequest& request) = 0;
  // How another process can tell the rendezvous that this one has died and that nothing of its
  // workers is left, so that the rendezvous does not wait for the end of the lease: by sending
  // `text` over a TCP connection of its own. Valid for this session. nullopt: there is nobody to
  // tell, as this process does not attend, or the rendezvous ends with it.
  struct DeathNotice {
    boost::asio::ip::tcp::endpoint to;
    std::string text;
  };
  virtual std::optional<DeathNotice> death_notice() const = 0;
  // Says WorkersStarted, WorkersExited, Leaving or AskToLeave (messages.h). AskToLeave is asked
  // again over each connection until it is answered. The client adds how long ago a worker failed.
  virtual void Say(Event event) = 0;
  // Answers LogWanted. Independent of the session: it may go on when this client has left, and
  // the client may be destroyed before it.
  virtual std::unique_ptr<LogDelivery> DeliverLog(std::uint64_t delivery,
                                                  LogDelivery::Handlers handlers) = 0;

  // Listener::TakeProgress has something to tell. Rendezvous hear of it within about a second.
  virtual void ProgressMade() = 0;
  // This node leaves; its workers are gone. `left` is called when the rendezvous has heard it or
  // cannot be told. Last call.
  virtual void Leave(const std::string& reason, std::function<void()> left) = 0;
};

// What WorkersExited::failed_ago is at `now`; zero when all have succeeded, or it is not known.
inline Duration FailedAgo(const RendezvousClient::Listener& listener, const WorkersOutcome& outcome,
                          TimePoint now) {
  const std::optional<TimePoint> failed = listener.FailedAt();
  return outcome.succeeded || !failed ? Duration::zero() : now - *failed;
}

// The client of an agent whose daemon is reached over the network.

struct GrpcClientOptions {
  Endpoint endpoint;
  Credentials credentials = Credentials::Plaintext();
  // How long to keep trying until the daemon first answers.
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(60);
  // How long to keep trying to come back when the connection has broken.
  std::chrono::milliseconds reconnect_timeout = std::chrono::minutes(10);
  // Nothing in this network refuses connections in the place of the daemon's machine.
  bool trust_refusals = false;
};

// The stream, the timer and the probes of an AgentSession (agent_session.h), which decides
// everything: one gRPC stream after another, the first opened by the first Join.
//
// `io` and `listener` must outlive it. Destroying it without Leave cuts the stream: the daemon
// takes the node for lost when it does not come back.
std::unique_ptr<RendezvousClient> MakeGrpcClient(boost::asio::io_context& io,
                                                 GrpcClientOptions options,
                                                 RendezvousClient::Listener& listener);

}  // namespace muster::rendezvous
