#include "launcher/agent/drain_watch.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/phrases.h"
#include "launcher/machine/slurm_node.h"

namespace muster::launcher {
namespace {

// Of all nodes of a job together.
constexpr std::chrono::milliseconds kBetweenQuestions = std::chrono::seconds(1);
constexpr std::chrono::seconds kAnswerLimit(30);
constexpr std::size_t kMaxNodeText = 64 * 1024;

}  // namespace

DrainWatch::Times DrainWatch::TimesOf(std::chrono::milliseconds interval, int rank, int nodes) {
  const auto count = static_cast<std::int64_t>(std::max(nodes, 1));
  const std::int64_t place = std::clamp<std::int64_t>(rank, 0, count - 1);
  const auto between = std::max(interval, kBetweenQuestions * count);
  return {.first = between * (place + 1) / count, .interval = between};
}

std::chrono::steady_clock::time_point DrainWatch::NextTime(
    std::chrono::steady_clock::time_point due, std::chrono::milliseconds interval,
    std::chrono::steady_clock::time_point now) {
  return due + interval * (1 + std::max<std::int64_t>(0, (now - due) / interval));
}

std::unique_ptr<DrainWatch> DrainWatch::Begin(boost::asio::io_context& io,
                                              const LaunchConfig& config,
                                              const Environment& environment, Callbacks callbacks) {
  const std::string node = GetOr(environment, "SLURMD_NODENAME", "");
  const bool in_slurm = !node.empty() && !GetOr(environment, "SLURM_JOB_ID", "").empty() &&
                        GetOr(environment, "MUSTER_SLURM", "1") != "0";
  if (!in_slurm || config.max_nodes == 1 || config.drain_interval.count() == 0) return nullptr;
  int rank = 0;
  if (!absl::SimpleAtoi(GetOr(environment, "SLURM_NODEID", "0"), &rank)) rank = 0;
  std::unique_ptr<DrainWatch> watch(new DrainWatch(
      io, node, ToBlock(environment), TimesOf(config.drain_interval, rank, config.max_nodes),
      config.min_nodes < config.max_nodes, std::move(callbacks)));
  watch->timer_.expires_after(watch->times_.first);
  watch->AwaitQuestion();
  return watch;
}

DrainWatch::DrainWatch(boost::asio::io_context& io, std::string node,
                       std::vector<std::string> environment, Times times, bool is_elastic,
                       Callbacks callbacks)
    : io_(io),
      node_(std::move(node)),
      environment_(std::move(environment)),
      times_(times),
      is_elastic_(is_elastic),
      callbacks_(std::move(callbacks)),
      timer_(io) {}

void DrainWatch::AwaitQuestion() {
  timer_.async_wait(lifetime_.Guard([this](boost::system::error_code error) {
    if (!error) Ask();
  }));
}

void DrainWatch::Ask() {
  auto started = worker::TimedCommand::Start(
      io_,
      {.argv = {"scontrol", "show", "node", node_},
       .env = environment_,
       .limit = kAnswerLimit,
       .output_limit = kMaxNodeText},
      [this](const worker::TimedCommandResult& result) { OnAnswer(result); });
  if (absl::IsNotFound(started.status())) {
    // There is no scontrol, and will not be one later.
    spdlog::log(is_elastic_ ? spdlog::level::warn : spdlog::level::info,
                "whether Slurm drains this node is not known, and it would stay in the job: {}; "
                "--drain-interval=0 asks nobody",
                std::string(started.status().message()));
    return;
  }
  if (!started.ok()) {
    OnNoAnswer(std::string(started.status().message()));
    return AwaitNext();
  }
  question_ = *std::move(started);
  callbacks_.on_command(question_->pid());
}

void DrainWatch::AwaitNext() {
  timer_.expires_at(NextTime(timer_.expiry(), times_.interval, std::chrono::steady_clock::now()));
  AwaitQuestion();
}

void DrainWatch::OnAnswer(const worker::TimedCommandResult& result) {
  question_.reset();
  AwaitNext();
  if (result.timed_out) {
    return OnNoAnswer(absl::StrCat("scontrol has not ended within ", base::Seconds(kAnswerLimit)));
  }
  const bool answered =
      result.status && result.status->signal == 0 && result.status->exit_code == 0;
  if (!answered) return OnNoAnswer("scontrol has failed");
  is_deaf_ = false;
  // The last thing done: this may be the end of the watch.
  if (const auto why = WhySlurmDrains(result.output)) callbacks_.on_drained(*why);
}

void DrainWatch::OnNoAnswer(const std::string& why) {
  if (std::exchange(is_deaf_, true)) return;
  spdlog::info("Slurm does not say whether it drains this node: {}; it is asked again in {}", why,
               base::Seconds(times_.interval));
}

}  // namespace muster::launcher
