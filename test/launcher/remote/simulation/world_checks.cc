// The checks of the launch tree's simulation, and the order of its phases.
#include "absl/strings/str_cat.h"
#include "test/launcher/remote/simulation/world.h"

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using enum HostNews::What;

// Far more than pauses, time limits and silences take one after another.
constexpr minutes kLongEnough(60);

}  // namespace

void World::CheckLinks(const ProcessPtr& process) {
  if (process->ending) return;
  if (process->links.size() > static_cast<std::size_t>(fan_out_options_.fanout)) {
    Violated(absl::StrCat(process->host, " has ", process->links.size(), " links"));
  }
  if (process->links.size() != process->fan_out.links()) {
    Violated(absl::StrCat(process->host, " has ", process->links.size(), " links and knows of ",
                          process->fan_out.links()));
  }
}

void World::CheckEverythingIsAsTold() {
  for (HostIndex i = 0; i < options_.hosts; ++i) {
    const Host& host = hosts_[static_cast<std::size_t>(i)];
    const auto& here = running_[i];
    const bool runs = !here.empty();
    if (!host.told) return Violated(absl::StrCat("host ", i, " was left behind"));
    const HostNews::What told = host.told->what;
    if (here.size() > 1) return Violated(absl::StrCat("host ", i, " runs twice"));
    if (runs && !IsConnected(here.front())) {
      return Violated(absl::StrCat("host ", i, " runs for nobody"));
    }
    if (told != kAnswered && told != kUnreachable) {
      return Violated(absl::StrCat("host ", i, " is left in the middle: ", host.told->reason));
    }
    if (runs != (told == kAnswered)) {
      return Violated(absl::StrCat("host ", i, runs ? " runs" : " does not run",
                                   ", and the root was told otherwise"));
    }
    if (!runs && !host.dead && (fan_out_options_.retry || faults_in_1000_ == 0)) {
      return Violated(absl::StrCat("host ", i, " is well and was left behind"));
    }
    if (runs) result_.depth = std::max(result_.depth, Depth(here.front()));
  }
}

void World::CheckNothingIsLeft() {
  for (const auto& [host, here] : running_) {
    if (!here.empty()) return Violated(absl::StrCat("host ", host, " still runs at the end"));
  }
}

SimulationResult World::Run() {
  std::vector<FanOut::Charge> all;
  for (HostIndex i = 0; i < options_.hosts; ++i) all.push_back({.host = i, .failures = 0});
  Do(root_, root_->fan_out.Adopt(all, now_));
  for (int i = 0; i < faults_in_1000_ * 10; ++i) {
    After(random_.Between(milliseconds(1), minutes(5)), [this] { SomethingBreaks(); });
  }
  RunUntil(now_ + minutes(5));
  faulty_ = false;
  RunUntil(now_ + kLongEnough);
  if (!Failed()) CheckEverythingIsAsTold();

  // The nodes end at random times, and some break meanwhile.
  std::int64_t running = 0;
  for (const auto& [host, here] : running_) {
    for (const ProcessPtr& process : here) {
      ++running;
      After(random_.Between(milliseconds(1), seconds(10)), [this, process] {
        process->node_runs = false;
        TellUp(process, {.host = process->host, .what = kEnded, .exit_code = process->host % 7});
      });
    }
  }
  RunUntil(now_ + minutes(1));
  std::int64_t ended = 0;
  for (HostIndex i = 0; i < options_.hosts; ++i) {
    const Host& host = hosts_[static_cast<std::size_t>(i)];
    if (host.ends_told == 0) continue;
    ++ended;
    if (host.told->exit_code != i % 7) Violated(absl::StrCat("host ", i, " has a wrong exit code"));
  }
  if (ended != running) Violated(absl::StrCat(running, " ran, and ", ended, " ends were reported"));

  // Processes whose nodes have ended break: they must not be started again.
  for (int i = 0; i < faults_in_1000_; ++i) {
    After(random_.Between(milliseconds(1), seconds(10)), [this] { SomethingBreaks(); });
  }
  RunUntil(now_ + minutes(5));

  if (!Failed()) {
    Do(root_, root_->fan_out.Stop());
    root_->ending = true;
    for (const auto& [id, link] : std::map(root_->links)) CloseLink(link);
    RunUntil(now_ + minutes(60));
    CheckNothingIsLeft();
  }
  result_.trace_hash = trace_.hash();
  return result_;
}

SimulationResult Simulate(const SimulationOptions& options) {
  return World(options).Run();
}

}  // namespace muster::launcher
