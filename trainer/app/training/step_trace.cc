#include "trainer/app/training/step_trace.h"

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kMostEvents = 500'000;  // about 60 MB

}  // namespace

StepTrace::StepTrace() : trace_(kMostEvents) {}

void StepTrace::Record(std::int64_t steps) {
  recorder_ = std::make_unique<TraceRecorder>(trace_);
  phases_.RecordTo(&trace_);
  steps_left_ = steps;
}

void StepTrace::OnStep() {
  if (recorder_ && --steps_left_ == 0) End();
}

void StepTrace::End() {
  recorder_.reset();
  phases_.RecordTo(nullptr);
}

absl::Status StepTrace::Write(const Job& job) {
  End();
  const std::string& path = job.options.report.trace;
  const absl::Status written = trace_.Write(TracePart(path, job.env.rank), job.env.rank);
  if (!written.ok()) return written;
  job.group().Barrier();
  if (!job.leads()) return absl::OkStatus();
  const absl::StatusOr<int> found = MergeTraceParts(path, job.env.world_size);
  if (!found.ok()) return found.status();
  if (*found < job.env.world_size) {
    job.progress.Say(absl::StrCat("the trace has ", *found, " of ", job.env.world_size,
                                  " ranks: those of other hosts are in ", path, ".rankN there"));
  }
  if (trace_.dropped() > 0) {
    job.progress.Say(
        absl::StrCat("the trace is full: ", trace_.dropped(), " events are not in it"));
  }
  return absl::OkStatus();
}

}  // namespace muster::trainer
