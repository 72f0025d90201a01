#include "launcher/report/failure_report.h"

#include <algorithm>

namespace muster::launcher {
namespace {

bool IsOneOf(const worker::ExitStatus& status, const std::vector<ExitCodeRange>& codes) {
  if (status.signal != 0) return false;
  return std::any_of(codes.begin(), codes.end(), [&status](const ExitCodeRange& range) {
    return range.first <= status.exit_code && status.exit_code <= range.last;
  });
}

}  // namespace

rendezvous::WorkerFailure ReportOf(const worker::FailureRecord& record,
                                   const rendezvous::NodeInfo& node, const ProgressFacts& progress,
                                   const std::vector<ExitCodeRange>& final_exit_codes) {
  return {.rank = record.rank,
          .local_rank = record.local_rank,
          .node_id = node.node_id,
          .host = node.host,
          .pid = record.pid,
          .exit_code = record.status.exit_code,
          .signal = record.status.signal,
          .what = record.what,
          .stderr_tail = record.stderr_tail,
          .log_path = record.log_path,
          .error_file = record.error_file,
          .before_first_beat = progress.no_beat_yet,
          .final = progress.ends_job || IsOneOf(record.status, final_exit_codes)};
}

}  // namespace muster::launcher
