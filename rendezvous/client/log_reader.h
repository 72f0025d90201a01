// What the workers of a job print, as a tool reads it: from whichever nodes keep it, by way of the
// daemon, for as long as the tool wants it.
#pragma once

#include <functional>
#include <memory>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"
#include "rendezvous/client/daemon_options.h"
#include "rendezvous/core/log_request.h"

namespace muster::rendezvous {

// One reading. Begins at once, over a connection of its own, and ends with on_end, or silently when
// it is destroyed, which may be at any time, also from within a handler.
//
// The next part is asked for when on_part returns, unless the reader is paused. Whoever takes his
// time holds up nobody: what waits between the agents and him is bounded (about 200 KiB for each
// node), and the rest is where they keep it.
//
// Lives on the loop's thread; `io` must outlive it.
class LogReader {
 public:
  struct Handlers {
    // A LogText is of one stream of one rank, at most 64 KiB, and may end in the middle of a line;
    // parts of several ranks come in any order, those of one stream in its own.
    std::function<void(const LogPart&)> on_part;
    // The last call. OK: all was told; with `follow`, the job has ended. DataLoss: something is
    // missing, as notices have said. NotFound: there is no such job. OutOfRange: it has no such
    // ranks, or its round is not known. FailedPrecondition: no round has started yet.
    // ResourceExhausted: a limit. Unavailable: the daemon cannot be reached, or ended meanwhile.
    // Each is one sentence that begins with the endpoint.
    std::function<void(const absl::Status&)> on_end;
  };

  LogReader(boost::asio::io_context& io, const DaemonOptions& daemon, const LogRequest& request,
            Handlers handlers);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  // No part is asked for until Resume; one that has been asked for may still come.
  void Pause();
  void Resume();

 private:
  class Stream;

  Stream* stream_ = nullptr;  // deletes itself once gRPC is done with it; null: it has ended
};

}  // namespace muster::rendezvous
