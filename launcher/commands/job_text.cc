#include "launcher/commands/job_text.h"

#include "absl/strings/str_cat.h"
#include "launcher/commands/job_view.h"
#include "launcher/report/report.h"

namespace muster::launcher {

std::string JobText(const rendezvous::JobSnapshot& job, absl::TimeZone zone) {
  std::string text = JobTable({job});
  if (!job.nodes.empty()) absl::StrAppend(&text, "\n", NodeTable(job));
  if (const std::string ranks = RankTable(job); !ranks.empty()) {
    absl::StrAppend(&text, "\n", ranks);
  }
  if (const std::string troubles = TroubleTable(job); !troubles.empty()) {
    absl::StrAppend(&text, "\n", troubles);
  }
  if (!job.rounds.empty()) absl::StrAppend(&text, "\n", RoundTable(job));
  if (job.failure) absl::StrAppend(&text, "\n", FormatFailure(*job.failure, zone));
  return text;
}

}  // namespace muster::launcher
