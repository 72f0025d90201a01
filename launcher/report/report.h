// What the user is told at the end of a run. Pure: text and a number out of values.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "launcher/config/launch_config.h"
#include "launcher/report/run_result.h"

namespace muster::launcher {

struct ReportContext {
  // Program::name.
  std::string program;
  // NodeInfo::node_id of this node.
  std::string node_id;
  // The moment of the report, for failures that do not bring their own, and how to show it.
  absl::Time now;
  absl::TimeZone zone;
  // Since the start of the agent.
  std::chrono::milliseconds elapsed{0};
  // Workers of this node that failed by themselves, too, after the first.
  std::vector<rendezvous::WorkerFailure> others;
  // What RestartTimeline::Lines() says.
  std::vector<std::string> restarts;
  // Also tell of a success without restarts (--log-level info).
  bool verbose = false;
};

// The text for stderr, whole lines; empty when there is nothing to say. A worker's failure is a
// block with torchrun's field names, so that what reads those reads ours; the rest is one line. The
// restarts follow it, indented, as what had happened by then.
// What workers wrote appears without control characters: it must not command the reader's terminal.
std::string FormatReport(const RunResult& result, const ReportContext& context);

// One of exit_code.h; with kWorker a failed worker's own, 128+n for signal n; 128+n when signal n
// interrupted the run.
int ExitCodeFor(const RunResult& result, ExitCodePolicy policy);

}  // namespace muster::launcher
