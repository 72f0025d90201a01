// The user's command that says whether this node is fit to take part in a round.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"
#include "base/lifetime.h"
#include "worker/process/timed_command.h"
#include "worker/tree/orphan_guard.h"

namespace muster::worker {

struct HealthCheckOptions {
  // The command for /bin/sh: "nvidia-smi -L".
  std::string command;
  // After this time it gets SIGKILL, and the node is not fit: such checks are there to find a
  // hanging driver.
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  // Its whole environment, "NAME=value" each, except MUSTER_AGENT_ID, which is added.
  std::vector<std::string> env;
};

// Runs the command once. Its process group does not outlast it: it is killed when the command has
// ended, at the timeout, with this object, and by a guard (orphan_guard.h) if this program is
// killed. Only the last line of its output is shown, as the reason; its standard input is
// /dev/null.
//
// Lives on the loop's thread, which must be the main thread (worker/process/spawn.h). Not to be
// used while a WorkerGroup runs, which would take the command's orphans for its workers'.
class HealthCheck {
 public:
  using DoneCallback = std::function<void(const absl::Status&)>;

  HealthCheck(boost::asio::io_context& io, HealthCheckOptions options);
  // Kills it if it is still running; then no callback runs.
  ~HealthCheck();
  HealthCheck(const HealthCheck&) = delete;
  HealthCheck& operator=(const HealthCheck&) = delete;

  // Starts the command; once only. `on_done` runs once, from the loop, and may destroy this object.
  // The status is JudgeHealth()'s (health_verdict.h), or
  //   the health check 'nvidia-smi -L' could not be started: fork: Resource temporarily unavailable
  void Start(DoneCallback on_done);

  // The end of what the command wrote, beginning with a whole line, at most 4 KiB. Complete when
  // on_done runs.
  const std::string& output() const { return output_; }

 private:
  void OnEnd(const TimedCommandResult& result);

  boost::asio::io_context& io_;
  const HealthCheckOptions options_;
  DoneCallback on_done_;
  std::string output_;
  std::optional<OrphanGuard> guard_;
  std::unique_ptr<TimedCommand> command_;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
