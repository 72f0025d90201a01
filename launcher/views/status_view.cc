#include "launcher/views/status_view.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "base/json.h"
#include "base/safe_text.h"
#include "launcher/views/report.h"
#include "rendezvous/pages/job_view.h"

namespace muster::launcher {
namespace {

using rendezvous::TableText;

rendezvous::Table EndedTable(const std::vector<rendezvous::JobEnd>& ended) {
  rendezvous::Table table{{"ENDED", "HOW", "MESSAGE"}};
  for (const rendezvous::JobEnd& end : ended) {
    table.rows.push_back({{end.run_id, rendezvous::Word(end.kind), end.sentence}});
  }
  return table;
}

// With an empty line between it and what is there.
void AppendPart(const std::string& part, std::string& text) {
  if (!part.empty()) absl::StrAppend(&text, text.empty() ? "" : "\n", part);
}

}  // namespace

std::string JobsJson(const std::vector<rendezvous::JobSnapshot>& jobs) {
  return base::SafeJson(base::JsonText(rendezvous::ToJson(jobs), /*indent=*/2)) + "\n";
}

std::string JobText(const rendezvous::JobSnapshot& job, absl::TimeZone zone) {
  std::string text = TableText(rendezvous::JobTable({job}));
  AppendPart(TableText(rendezvous::NodeTable(job)), text);
  AppendPart(TableText(rendezvous::RankTable(job)), text);
  AppendPart(TableText(rendezvous::RankAlertTable(job)), text);
  AppendPart(TableText(rendezvous::RoundTable(job)), text);
  if (job.failure) AppendPart(FormatFailure(*job.failure, zone), text);
  return text;
}

std::string WatchText(const rendezvous::WatchedJobs& watched, bool of_one_job,
                      absl::TimeZone zone) {
  if (watched.jobs.empty() && watched.ended.empty()) return "no jobs\n";
  std::string text = of_one_job && !watched.jobs.empty()
                         ? JobText(watched.jobs.front(), zone)
                         : TableText(rendezvous::JobTable(watched.jobs));
  AppendPart(TableText(EndedTable(watched.ended)), text);
  return text;
}

std::string WatchJson(const rendezvous::WatchedJobs& watched) {
  base::Json ended = base::Json::array();
  for (const rendezvous::JobEnd& end : watched.ended) {
    ended.push_back(
        {{"run_id", end.run_id}, {"outcome", Name(end.kind)}, {"message", end.sentence}});
  }
  return absl::StrCat(base::SafeJson(base::JsonText({{"jobs", rendezvous::ToJson(watched.jobs)},
                                                     {"ended", std::move(ended)}})),
                      "\n");
}

}  // namespace muster::launcher
