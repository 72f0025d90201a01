#include "worker/group/health_check.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include <boost/asio/post.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "base/safe_text.h"
#include "base/text.h"
#include "worker/exit_status.h"
#include "worker/output/lines.h"
#include "worker/tree/orphan_hunt.h"

namespace muster::worker {
namespace {

// TimedCommand keeps the beginning of the output: beyond this, the last line is unknown.
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
  // Start the guard first, as this program may be killed at any time. Without a guard the kernel
  // then kills only the shell.
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
  // A group's id is not reused while it has a member; and if it has none left, only after all other
  // pids.
  ::kill(-command_->pid(), SIGKILL);
  guard_.reset();
  output_ = TailOf(result.output, kHealthOutputTail);
  // Last, as the callback may destroy this object.
  const DoneCallback told = std::move(on_done_);
  told(JudgeHealth(options_.command, options_.timeout, result));
}

namespace {

// Of a longer line the beginning is shown, where the words are.
constexpr std::size_t kMaxReason = 300;

// The last nonempty line of `text`; empty if there is none.
std::string LastLine(std::string text) {
  // A program may overwrite its line, and leave it empty.
  std::replace(text.begin(), text.end(), '\r', '\n');
  std::string last;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::string words = base::TerminalLine({line.data(), line.size()});
    absl::StripAsciiWhitespace(&words);
    if (!words.empty()) last = std::move(words);
  }
  std::string shown = base::SafeLine(last, kMaxReason);
  if (last.size() > kMaxReason) shown += "...";
  return shown;
}

}  // namespace

absl::Status JudgeHealth(const std::string& command, std::chrono::milliseconds timeout,
                         const TimedCommandResult& result) {
  if (!result.timed_out && result.status->Succeeded()) return absl::OkStatus();
  std::string why;
  if (result.timed_out) {
    const double seconds = std::chrono::duration<double>(timeout).count();
    why = absl::StrCat("did not end within ", seconds, " s and ",
                       result.status.has_value() ? "was killed" : "not even SIGKILL ends it");
  } else {
    why = DescribeExit(*result.status);
  }
  const std::string last_line =
      result.output_cut ? "" : LastLine(TailOf(result.output, kHealthOutputTail));
  if (!last_line.empty()) absl::StrAppend(&why, ": ", last_line);
  return HealthUnknown(command, why);
}

absl::Status HealthUnknown(const std::string& command, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat("the health check '", command, "' ", why));
}

}  // namespace muster::worker
