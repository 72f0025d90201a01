// What the user is told at the end of a run. Pure: values in, text and a number out.
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
  // The time of the report, for failures without a time of their own, and the time zone to show it
  // in.
  absl::Time now;
  absl::TimeZone zone;
  // Since the start of the agent.
  std::chrono::milliseconds elapsed{0};
  // Workers of this node that also failed by themselves, after the first.
  std::vector<rendezvous::WorkerFailure> others;
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

// One of exit_code.h; with kWorker a failed worker's own code, or 128+n for signal n; 128+n also
// when signal n interrupted the run.
int ExitCodeFor(const RunResult& result, ExitCodePolicy policy);

}  // namespace muster::launcher
