// A reader of logs that outlives its daemon: when the connection breaks it goes on where it was,
// with that daemon once it is back or with the one that has taken over.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/status.h"
#include "base/lifetime.h"
#include "rendezvous/client/daemon_options.h"
#include "rendezvous/client/log_reader.h"
#include "rendezvous/client/read_so_far.h"
#include "rendezvous/core/log_request.h"

namespace muster::rendezvous {

// A LogReader (see there), made again for a request with `follow`: at once, then after growing
// pauses of up to four seconds, until `comes_back_for` has passed since the connection broke. No
// byte is told twice, and none is left out that its agent still has. Where a daemon or an agent is
// of a version that cannot tell how far it was read, it ends with the connection.
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
  int failures_ = 0;  // in a row
  boost::asio::steady_timer pause_;
  const base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
