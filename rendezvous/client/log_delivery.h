// What an agent brings to its daemon for somebody who reads what its workers print.
#pragma once

#include <functional>

#include "rendezvous/core/log_request.h"

namespace muster::rendezvous {

// One delivery, from LogWanted until it is over. Lives on the loop's thread; handlers are called
// from the loop, never from within a method, and may destroy it. Destroying it cuts it off.
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

}  // namespace muster::rendezvous
