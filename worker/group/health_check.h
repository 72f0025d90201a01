// The user's command that checks whether this node is fit for a round.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"

#include "base/lifetime.h"
#include "worker/exit_status.h"
#include "worker/process/process.h"
#include "worker/tree/orphan_guard.h"

namespace muster::worker {

struct HealthCheckOptions {
  // The command for /bin/sh: "nvidia-smi -L".
  std::string command;
  // After this time it gets SIGKILL, and the node is unfit: such checks are meant to detect a
  // hanging driver.
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  // Its whole environment, "NAME=value" each, without MUSTER_AGENT_ID, which is added.
  std::vector<std::string> env;
};

// Runs the command once. Its process group is killed when the command exits, at the timeout, with
// this object, and by a guard (orphan_guard.h) if this program is killed. Only the last line of its
// output is shown, as the reason; its standard input is /dev/null.
//
// Lives on the loop's thread, which must be the main thread (worker/process/spawn.h). Must not be
// used while a WorkerGroup runs, which would take the command's orphans for its workers'.
class HealthCheck {
 public:
  using DoneCallback = std::function<void(const absl::Status&)>;

  HealthCheck(boost::asio::io_context& io, HealthCheckOptions options);
  // Kills the command if it still runs; then no callback runs.
  ~HealthCheck();
  HealthCheck(const HealthCheck&) = delete;
  HealthCheck& operator=(const HealthCheck&) = delete;

  // Starts the command; call once only. `on_done` runs once, from the loop, and may destroy this
  // object. The status is JudgeHealth()'s, or
  //   the health check 'nvidia-smi -L' could not be started: fork: Resource temporarily unavailable
  void Start(DoneCallback on_done);

  // The end of the command's output, starting with a whole line, at most 4 KiB. Complete when
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

// What a health check's result says about its node.

// How much of a check's output is kept.
inline constexpr std::size_t kHealthOutputTail = 4 * 1024;

// OK if `command` exited with 0 within `timeout`, else FailedPrecondition with one line that says
// why not and ends with the last line of its output:
//   the health check 'nvidia-smi -L' exited with code 9: No devices were found
//   the health check 'nvidia-smi -L' did not end within 30 s and was killed
absl::Status JudgeHealth(const std::string& command, std::chrono::milliseconds timeout,
                         const TimedCommandResult& result);

// For a check without a result: "the health check 'nvidia-smi -L' `why`".
absl::Status HealthUnknown(const std::string& command, const std::string& why);

}  // namespace muster::worker
