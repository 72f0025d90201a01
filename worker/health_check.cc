#include "worker/health_check.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <boost/asio/post.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "worker/agent_mark.h"
#include "worker/failure_record.h"
#include "worker/tail_buffer.h"

namespace muster::worker {
namespace {

constexpr std::size_t kOutputTail = 4 * 1024;
// Of a longer line its beginning is shown, as it is where the words are.
constexpr std::size_t kMaxReason = 300;
// TimedCommand keeps the beginning; of a check that writes more than this, the end is not known.
constexpr std::size_t kOutputLimit = 1024 * 1024;

// The last line of `text` with something in it; empty when there is none.
std::string LastLine(std::string text) {
  // A program may draw with control characters; none of them is for whoever reads the reason.
  std::replace(text.begin(), text.end(), '\r', '\n');
  std::replace_if(
      text.begin(), text.end(),
      [](unsigned char byte) { return byte != '\n' && (byte < ' ' || byte == 0x7f); }, ' ');
  const std::size_t last = text.find_last_not_of(" \n");
  if (last == std::string::npos) return "";
  text.erase(last + 1);
  // npos + 1 is the beginning.
  text.erase(0, text.rfind('\n') + 1);
  text.erase(0, text.find_first_not_of(' '));
  if (text.size() > kMaxReason) text.replace(kMaxReason, std::string::npos, "...");
  return text;
}

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
    boost::asio::post(io_, [this, alive = std::weak_ptr<void>(alive_), status = Unfit(why)] {
      if (alive.expired()) return;
      const DoneCallback told = std::move(on_done_);
      told(status);
    });
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
  output_ = TailOf(result.output, kOutputTail);
  // The last thing done: the callback may destroy this object.
  const DoneCallback told = std::move(on_done_);
  told(Judge(result));
}

absl::Status HealthCheck::Judge(const TimedCommandResult& result) const {
  if (!result.timed_out && result.status->Succeeded()) return absl::OkStatus();
  std::string why;
  if (result.timed_out) {
    const double seconds = std::chrono::duration<double>(options_.timeout).count();
    why = absl::StrCat("did not end within ", seconds, " s and ",
                       result.status.has_value() ? "was killed" : "SIGKILL does not end it either");
  } else {
    why = DescribeExit(*result.status);
  }
  const std::string last_line = result.output_cut ? "" : LastLine(output_);
  if (!last_line.empty()) absl::StrAppend(&why, ": ", last_line);
  return Unfit(why);
}

absl::Status HealthCheck::Unfit(std::string_view why) const {
  return absl::FailedPreconditionError(absl::StrCat("the health check '", options_.command, "' ",
                                                    absl::string_view(why.data(), why.size())));
}

}  // namespace muster::worker
