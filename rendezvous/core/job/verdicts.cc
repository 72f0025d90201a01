#include "rendezvous/core/job/verdicts.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/phrases.h"
#include "rendezvous/core/phrases.h"

namespace muster::rendezvous {
namespace {

constexpr std::size_t kBriefText = 512;

Verdict MakeVerdict(const JobFacts& job, VerdictKind kind, const std::string& what) {
  return {.kind = kind,
          .sentence = absl::StrCat("job '", job.run_id, "'", what),
          .rounds = job.rounds,
          .restarts = job.restarts};
}

}  // namespace

Verdict SucceededVerdict(const JobFacts& job, const std::vector<Placement>& members) {
  int workers = 0;
  for (const Placement& member : members) workers += member.node->slots;
  return MakeVerdict(
      job, VerdictKind::kSucceeded,
      absl::StrCat(" succeeded: ", base::Count(workers, "worker"), " on ",
                   base::Count(members.size(), "node"), ", ", base::Count(job.rounds, "round"),
                   ", ", base::Count(job.restarts, "restart")));
}

Verdict WorkerFailedVerdict(const JobFacts& job, RoundNumber round, const WorkerFailure& failure,
                            const std::string& because) {
  Verdict verdict = MakeVerdict(
      job, VerdictKind::kWorkerFailed,
      absl::StrCat(" failed in round ", round, ": ", DescribeFailure(failure), because));
  verdict.root_cause = failure;
  return verdict;
}

Verdict JoinTimeoutVerdict(const JobFacts& job, const std::string& why) {
  return MakeVerdict(job, VerdictKind::kJoinTimeout, ": " + why);
}

Verdict ClosedVerdict(const JobFacts& job, const std::string& why) {
  return MakeVerdict(job, VerdictKind::kClosed, " was closed: " + why);
}

Verdict WithoutQuotes(Verdict verdict) {
  if (!verdict.root_cause) return verdict;
  WorkerFailure& failure = *verdict.root_cause;
  failure.stderr_tail.clear();
  failure.error_traceback.clear();
  for (std::string* const text : {&failure.error_message, &failure.operations}) {
    text->resize(std::min(text->size(), kBriefText));
  }
  return verdict;
}

}  // namespace muster::rendezvous
