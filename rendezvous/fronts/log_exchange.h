// Where readers of workers' output and the agents that bring it meet in a running daemon.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "rendezvous/core/daemon_core.h"
#include "rendezvous/core/log_readers.h"
#include "rendezvous/core/log_request.h"

namespace muster::rendezvous {

// Carries out what LogReaders decides; each Driver has one. Fronts open readings and deliveries and
// say how they fare. Handlers may be called from within any of these calls. Lives on the loop's
// thread.
class LogExchange {
 public:
  // `follow` is called after everything that happens, and has what follows done (Do). `core` must
  // outlive this.
  LogExchange(DaemonCore& core, std::function<void()> follow)
      : core_(core), follow_(std::move(follow)) {}
  LogExchange(const LogExchange&) = delete;
  LogExchange& operator=(const LogExchange&) = delete;

  struct Reader {
    // One part, for which Took is to be called when it is taken: until then no other comes.
    std::function<void(LogPart)> on_part;
    // The last call.
    std::function<void(const absl::Status&)> on_end;
  };
  // The handlers may be called before this returns.
  LogReaderId OpenReader(LogRequest request, Reader reader);
  void Took(LogReaderId reader);
  // It hears nothing more.
  void CloseReader(LogReaderId reader);

  struct Source {
    // One more part may come: Brought or Ended is to follow.
    std::function<void()> read;
    // Nobody wants any more. The last call.
    std::function<void()> end;
  };
  // False: nobody wants what the agent was asked for. `read` may be called before this returns.
  bool OpenDelivery(LogDeliveryId delivery, Source source);
  void Brought(LogDeliveryId delivery, LogPart part);
  // It brings nothing more, and hears nothing more.
  void Ended(LogDeliveryId delivery, const absl::Status& status);

  // Does this, which the core has asked for.
  void Do(GiveLogPart&& give);
  void Do(EndLogReader&& end);
  void Do(ReadLogDelivery&& read);
  void Do(EndLogDelivery&& end);

 private:
  DaemonCore& core_;
  const std::function<void()> follow_;
  LogReaderId next_reader_ = 1;
  std::map<LogReaderId, Reader> readers_;
  std::map<LogDeliveryId, Source> sources_;
};

}  // namespace muster::rendezvous
