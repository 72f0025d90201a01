// What the workers of a job print, as a tool reads it: from whichever nodes keep it, by way of the
// daemon, for as long as the tool wants it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"

#include "base/async/timer.h"
#include "rendezvous/client/daemon_channel.h"
#include "rendezvous/core/values/log_request.h"

namespace muster::rendezvous {

namespace v1 {
class LogPart;
}  // namespace v1

template <typename Out, typename In>
class ClientStream;

// One reading. Begins at once, over a connection of its own, and ends with on_end, or silently when
// it is destroyed, which may be at any time, also from within a handler.
//
// The next part is asked for when on_part returns, unless the reader is paused. A slow reader holds
// up nobody: what waits between it and the agents is bounded (about 200 KiB for each node), and the
// rest stays with the agents.
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
  const std::shared_ptr<ClientStream<void, v1::LogPart>> stream_;
};

// A reader of logs that outlives its daemon: when the connection breaks it goes on where it was,
// with that daemon once it is back or with the one that has taken over. A LogReader (see there),
// made again for a request with `follow`: at once, then after growing pauses of up to four seconds,
// until `comes_back_for` has passed since the connection broke. No byte is told twice, and none is
// left out that its agent still has. Where a daemon or an agent is of a version that cannot tell
// how far it was read, it ends with the connection.
class LogFollower {
 public:
  // As long as agents wait for a daemon unless they are told otherwise (reconnect_timeout).
  static constexpr std::chrono::minutes kComesBackFor{10};

  struct Handlers {
    // As LogReader's; what was told before is not told again.
    std::function<void(const LogPart&)> on_part;
    // The connection broke, and is made again from now on: why, one sentence. Once each time.
    std::function<void(const std::string& why)> on_outage;
    // The last call; as LogReader's. Unavailable: the daemon could not be reached at all, has not
    // come back in time, or cannot be asked for the rest.
    std::function<void(const absl::Status&)> on_end;
  };

  // `io` must outlive it. May be destroyed at any time, also from within a handler.
  LogFollower(boost::asio::io_context& io, DaemonOptions daemon, LogRequest request,
              std::chrono::milliseconds comes_back_for, Handlers handlers);
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  void Read(const LogRequest& request);
  void Take(const LogPart& part);
  void OnReadEnd(const absl::Status& status);
  bool MayComeBack(const absl::Status& status) const;
  void End(const absl::Status& status);

  boost::asio::io_context& io_;
  const DaemonOptions daemon_;
  const LogRequest request_;
  const std::chrono::milliseconds comes_back_for_;
  const Handlers handlers_;
  const Clock::time_point began_ = Clock::now();
  ReadSoFar read_;
  std::optional<LogReader> reader_;
  // Since when there is no daemon; nullopt: there is one, or none has answered yet.
  std::optional<Clock::time_point> away_since_;
  base::Backoff backoff_{std::chrono::milliseconds(250), std::chrono::seconds(4)};
  base::Timer pause_;
};

}  // namespace muster::rendezvous
