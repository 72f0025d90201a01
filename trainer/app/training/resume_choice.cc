#include "trainer/app/training/resume_choice.h"

#include <algorithm>
#include <utility>

#include "trainer/app/training/job_name.h"

namespace muster::trainer {
namespace {

// The name of this job, as far as the directories know it.
std::string NameOfJob(const std::vector<DirectoryReport>& reports, const ResumeRequest& request) {
  std::string job;
  if (!request.restarted) return job;
  for (const DirectoryReport& report : reports) {
    if (IsOfRun(report.job, request.run_id)) job = std::max(job, report.job);
  }
  return job;
}

// The job that has made a directory's newest checkpoint: one that has used it without saving
// anything has not.
std::string MakerOf(const DirectoryReport& report) {
  return report.latest ? report.job : std::string();
}

bool Counts(const DirectoryReport& report, const ResumeRequest& request, const std::string& job) {
  if (!report.step) return false;
  if (job.empty()) return request.automatic && (!request.restarted || report.job.empty());
  return report.latest && report.job == job && (request.automatic || report.step == report.latest);
}

}  // namespace

ResumeChoice ChooseCheckpoint(const std::vector<DirectoryReport>& reports,
                              const ResumeRequest& request) {
  ResumeChoice choice{.job = NameOfJob(reports, request)};
  const DirectoryReport* best = nullptr;
  const auto age = [](const DirectoryReport& report) {
    return std::pair(MakerOf(report), *report.step);
  };
  for (const DirectoryReport& report : reports) {
    if (!Counts(report, request, choice.job)) continue;
    if (best == nullptr || age(*best) < age(report)) best = &report;
  }
  if (best == nullptr) return choice;
  choice.rank = best->rank;
  choice.step = *best->step;
  choice.maker = MakerOf(*best);
  for (const DirectoryReport& report : reports) {
    if (!Counts(report, request, choice.job)) continue;
    if (age(report) == age(*best)) choice.holders.push_back(report.rank);
    if (*report.step > choice.step) choice.passed_over.push_back(report.rank);
  }
  return choice;
}

}  // namespace muster::trainer
