#include "trainer/app/training/resume_choice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "base/text.h"

namespace muster::trainer {
namespace {

// The name of this job, as far as the directories have it.
std::string NameOfJob(const std::vector<DirectoryReport>& reports, const ResumeRequest& request) {
  std::string job;
  if (!request.restarted) return job;
  for (const DirectoryReport& report : reports) {
    if (IsOfRun(report.job, request.run_id)) job = std::max(job, report.job);
  }
  return job;
}

// The job that saved a directory's newest checkpoint; one that used the directory without saving
// does not count.
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

namespace {

// The run id as a single word.
std::string Word(std::string_view run_id) {
  std::string word(run_id.substr(0, 96));
  std::replace_if(
      word.begin(), word.end(), [](unsigned char c) { return !absl::ascii_isgraph(c); }, '_');
  return word;
}

}  // namespace

std::string MakeJobName(std::chrono::system_clock::time_point now, std::string_view run_id) {
  const auto since = now.time_since_epoch();
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
  return absl::StrFormat("%016d-%s %s", microseconds, base::RandomName(8), Word(run_id));
}

bool IsOfRun(std::string_view job, std::string_view run_id) {
  const std::size_t space = job.find(' ');
  return space != std::string_view::npos && job.substr(space + 1) == Word(run_id);
}

}  // namespace muster::trainer
