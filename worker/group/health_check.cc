#include "worker/group/health_check.h"

#include <csignal>
#include <cstdlib>
#include <utility>

#include <boost/asio/post.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "worker/group/health_verdict.h"
#include "worker/output/tail_buffer.h"
#include "worker/tree/agent_mark.h"

namespace muster::worker {
namespace {

// TimedCommand keeps the beginning; of a check that writes more than this, the end is not known.
constexpr std::size_t kOutputLimit = 1024 * 1024;

}  // namespace

HealthCheck::HealthCheck(boost::asio::io_context& io, HealthCheckOptions options)
    : io_(io), options_(std::move(options)) {}

HealthCheck::~HealthCheck() = default;

void HealthCheck::Start(DoneCallback on_done) {
  if (on_done_ != nullptr) std::abort();
  on_done_ = std::move(on_done);
  TimedCommandOptions command{.argv = {"/bin/sh", "-c", options_.command},
                              .env = options_.env,
                              .limit = options_.timeout,
                              .output_limit = kOutputLimit};
  AddMark(AgentMark(), &command.env);
  // Before the command: this program may be killed at any time from then on. The kernel ends the
  // shell then, and without a guard just that.
  absl::StatusOr<OrphanGuard> guard = OrphanGuard::Start({.capacity = 1, .mark = AgentMark()});
  if (guard.ok()) guard_.emplace(*std::move(guard));
  auto started = TimedCommand::Start(io_, std::move(command),
                                     [this](const TimedCommandResult& result) { OnEnd(result); });
  if (!started.ok()) {
    const std::string why = absl::StrCat("could not be started: ", started.status().message());
    boost::asio::post(io_, lifetime_.Guard([this, status = HealthUnknown(options_.command, why)] {
      const DoneCallback told = std::move(on_done_);
      told(status);
    }));
    return;
  }
  command_ = *std::move(started);
  if (guard_) guard_->Watch(command_->pid());
}

void HealthCheck::OnEnd(const TimedCommandResult& result) {
  // As long as a member of the group is left its number is not given to another, and when none is
  // left the kernel comes back to it only after all the others.
  ::kill(-command_->pid(), SIGKILL);
  guard_.reset();
  output_ = TailOf(result.output, kHealthOutputTail);
  // The last thing done: the callback may destroy this object.
  const DoneCallback told = std::move(on_done_);
  told(JudgeHealth(options_.command, options_.timeout, result));
}

}  // namespace muster::worker
