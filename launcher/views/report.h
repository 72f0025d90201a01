// What the user is told at the end of a run. Pure: values in, text and a number out.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "launcher/cli/launch_config.h"
#include "launcher/replay/agent_event.h"
#include "launcher/run/agent_core.h"

namespace muster::launcher {

struct ReportContext {
  // Program::name.
  std::string program;
  // NodeInfo::node_id of this node.
  std::string node_id;
  // The time of the report, for failures without a time of their own, and the time zone to show it
  // in.
  absl::Time now;
  absl::TimeZone zone;
  // Since the start of the agent.
  std::chrono::milliseconds elapsed{0};
  // Workers of this node that also failed by themselves, after the first.
  std::vector<rendezvous::WorkerFailure> others;
  // The files with what this node's workers were doing when its last round hung.
  std::vector<std::string> evidence;
  // The result of RestartTimeline::Lines().
  std::vector<std::string> restarts;
  // Also report a success without restarts (--log-level info).
  bool verbose = false;
};

// The text for stderr, whole lines; empty when there is nothing to say. A worker's failure is a
// block with torchrun's field names, so that programs that read torchrun's can read ours; any other
// result is one line. The restarts follow it, indented, as part of what happened. What workers
// wrote is shown without control characters: it must not control the reader's terminal.
std::string FormatReport(const RunResult& result, const ReportContext& context);

// A job's first failure for who looks at it from elsewhere: as in the block of FormatReport,
// without a time that nobody told.
std::string FormatFailure(const rendezvous::WorkerFailure& failure, absl::TimeZone zone);

// One of command_run.h; with kWorker a failed worker's own code, or 128+n for signal n; 128+n also
// when signal n interrupted the run.
int ExitCodeFor(const RunResult& result, ExitCodePolicy policy);

// How long each restart of this node's workers took, step by step: what the user is told at the end
// of a run.

// A restart begins when the agent learns that a round is over, from a failure here or by being
// told, and is done when the next round's workers run:
//
//   detected -> told -> stopped -> rejoined -> started -> first beat
//
// (the last only where workers beat).
// Pure: the time comes in with each event.
class RestartTimeline {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void On(const AgentEvent& event, Time time);

  // One line for each restart that was done, in the past tense:
  // "round 0 ended: rank 1 exited with code 1; the workers of round 1 ran 9.8 ms later (told 0.4
  // ms, stopped 2.1 ms, rejoined 2.2 ms)". All times are from when it was detected. Of more than
  // twice kShownRestarts only the first and the last are told, and between them how many there
  // were.
  static constexpr std::size_t kShownRestarts = 10;
  std::vector<std::string> Lines() const;

 private:
  struct Restart {
    rendezvous::RoundNumber round = rendezvous::kNoRound;
    std::string cause;
    Time detected;
    std::optional<Time> told;
    std::optional<Time> stopped;
    std::optional<Time> rejoined;
    Time started;
    rendezvous::RoundNumber next_round = rendezvous::kNoRound;
    std::optional<Time> first_beat;
  };

  static std::string Line(const Restart& restart);

  // The restart in progress.
  std::optional<Restart> current_;
  // Those that were done: the first, and the last.
  std::vector<Restart> first_;
  std::deque<Restart> last_;
  std::size_t between_ = 0;
};

}  // namespace muster::launcher
