#include "rendezvous/core/job/job_progress.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

#include "base/text.h"
#include "rendezvous/core/values/limits.h"

namespace muster::rendezvous {
namespace {

// A rank's first steps are warm-up and are not judged.
constexpr std::int64_t kFewestSteps = 5;
constexpr int kInARow = 3;
// The kernel's scheduler can delay a step by this much; that is not the rank's fault.
constexpr double kLeastSeconds = 0.005;
// Next to a median near zero the ratio is meaningless; capped.
constexpr double kMostSlower = 1000;
// Reported at once; a slow switch has many ranks behind it.
constexpr std::size_t kMostSentences = 4;

double LowerMedian(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool IsJudged(const RankProgress& told) {
  return told.timed_steps >= kFewestSteps && OwnSeconds(told).has_value();
}

std::string InSeconds(double seconds) {
  return base::Seconds(std::chrono::milliseconds(std::llround(1000 * seconds)));
}

std::string Explain(const StragglerChange& change, const std::string& host) {
  const std::string rank = absl::StrCat("rank ", change.rank, " on host ", host);
  const std::string times = absl::StrCat(InSeconds(change.own), " of each step, ",
                                         InSeconds(change.median), " at the median");
  if (!change.begins) {
    return absl::StrCat(rank, " is no longer a straggler, after ", base::Seconds(change.lasted),
                        ": it takes ", times);
  }
  return absl::StrCat(rank, " is a straggler, ", std::lround(100 * change.slower),
                      " % slower than the median rank: without waiting for others it takes ", times,
                      "; ", InSeconds(change.in_phase), " of that in '", change.phase, "', ",
                      InSeconds(change.median_in_phase), " at the median");
}

// A look goes through all ranks of the job; agents report once a second.
constexpr Duration kLookPause = std::chrono::milliseconds(500);
// Named at once; all ranks of a node lose output when its disk is full.
constexpr std::size_t kMostInWords = 4;

}  // namespace

std::vector<Notice> ExplainAll(const std::vector<StragglerChange>& changes,
                               const std::function<const std::string&(int rank)>& host_of) {
  const auto kind_of = [](bool begins) {
    return begins ? Notice::Kind::kStraggler : Notice::Kind::kStragglerOver;
  };
  std::vector<Notice> notices;
  for (const StragglerChange& change : changes) {
    if (notices.size() == kMostSentences) break;
    notices.push_back({Explain(change, host_of(change.rank)), kind_of(change.begins), change.rank});
  }
  if (const std::size_t more = changes.size() - notices.size(); more > 0) {
    const auto begin = std::count_if(changes.begin() + kMostSentences, changes.end(),
                                     [](const StragglerChange& one) { return one.begins; });
    const auto end = static_cast<std::ptrdiff_t>(more) - begin;
    notices.push_back(
        {absl::StrCat(begin > 0 ? absl::StrCat(begin, " more have become stragglers; ") : "",
                      end > 0 ? absl::StrCat(end, " more no longer are; ") : "",
                      "`muster status` shows all"),
         kind_of(begin > 0)});
  }
  return notices;
}

// A phase's median is computed when it is first needed.
struct Stragglers::Medians {
  const Ranks& ranks;
  double own = 0;
  std::map<std::string, double> phases{};

  double Of(const std::string& phase) {
    if (const auto known = phases.find(phase); known != phases.end()) return known->second;
    std::vector<double> times;
    for (const auto& [rank, told] : ranks) {
      if (!IsJudged(told)) continue;
      const auto found = std::find_if(told.phases.begin(), told.phases.end(),
                                      [&](const PhaseTime& one) { return one.name == phase; });
      times.push_back(found == told.phases.end() ? 0 : found->seconds);
    }
    return phases[phase] = LowerMedian(std::move(times));
  }

  // Fills in the phase in which this rank loses most.
  void NamePhase(const RankProgress& told, StragglerChange& change) {
    double most = 0;
    for (const PhaseTime& phase : told.phases) {
      if (phase.waits) continue;
      const double median = Of(phase.name);
      if (!change.phase.empty() && phase.seconds - median <= most) continue;
      most = phase.seconds - median;
      change.phase = phase.name;
      change.in_phase = phase.seconds;
      change.median_in_phase = median;
    }
  }
};

std::vector<StragglerChange> Stragglers::Look(const Ranks& ranks, TimePoint now) {
  if (threshold_ <= 0) return {};
  std::vector<double> owns;
  for (const auto& [rank, told] : ranks) {
    if (IsJudged(told)) owns.push_back(*OwnSeconds(told));
  }
  if (owns.size() < 2) return {};
  Medians medians{.ranks = ranks, .own = LowerMedian(std::move(owns))};
  if (medians.own <= 0) return {};
  std::vector<StragglerChange> changes;
  for (const auto& [rank, told] : ranks) {
    if (!IsJudged(told)) continue;
    if (auto change = Judge(rank, told, medians, now)) changes.push_back(*std::move(change));
  }
  return changes;
}

std::optional<StragglerChange> Stragglers::Judge(int rank, const RankProgress& told,
                                                 Medians& medians, TimePoint now) {
  Judged& judged = judged_[rank];
  if (told.timed_steps <= std::exchange(judged.timed_steps, told.timed_steps)) return std::nullopt;
  StragglerChange change{.rank = rank, .own = *OwnSeconds(told), .median = medians.own};
  change.slower = std::min(change.own / change.median - 1, kMostSlower);
  change.begins = change.own - change.median >= kLeastSeconds &&
                  change.slower > (judged.since ? threshold_ / 2 : threshold_);
  if (change.begins) {
    medians.NamePhase(told, change);
    judged.slower = change.slower;
    judged.phase = change.phase;
  }
  const bool is_as_before = change.begins == judged.since.has_value();
  judged.against = is_as_before ? 0 : judged.against + 1;
  if (judged.against < kInARow) return std::nullopt;
  judged.against = 0;
  if (change.begins) {
    judged.since = now;
  } else {
    change.lasted = now - *std::exchange(judged.since, std::nullopt);
  }
  return change;
}

std::optional<Straggling> Stragglers::Find(int rank, TimePoint now) const {
  const auto found = judged_.find(rank);
  if (found == judged_.end() || !found->second.since) return std::nullopt;
  return Straggling{found->second.slower, found->second.phase, now - *found->second.since};
}

std::string FormatRankAlerts(const std::vector<RankAlertSnapshot>& alerts) {
  if (alerts.empty()) return "reports that its ranks are fine again";
  std::string words = "says:";
  for (std::size_t i = 0; i < std::min(alerts.size(), kMostInWords); ++i) {
    absl::StrAppend(&words, i == 0 ? " rank " : "; rank ", alerts[i].rank, " ",
                    alerts[i].told.what);
  }
  if (alerts.size() > kMostInWords) {
    absl::StrAppend(&words, "; and ", alerts.size() - kMostInWords, " more");
  }
  return words;
}

std::vector<StragglerChange> JobProgress::Hear(const std::vector<RankProgress>& ranks,
                                               int first_rank, int slots, TimePoint now) {
  const int most = std::min(slots, static_cast<int>(limits::kRanksToldOfNode.most));
  for (const RankProgress& told : ranks) {
    if (told.local_rank < 0 || told.local_rank >= most) continue;
    ranks_[first_rank + told.local_rank] = told;
    last_beats_[first_rank + told.local_rank] = now - std::max(told.ago, Duration::zero());
  }
  if (looked_ && now - *looked_ < kLookPause) return {};
  looked_ = now;
  return stragglers_.Look(ranks_, now);
}

std::vector<RankSnapshot> JobProgress::Describe(int first_rank, int slots, TimePoint now) const {
  std::vector<RankSnapshot> snapshots;
  for (auto at = ranks_.lower_bound(first_rank);
       at != ranks_.end() && at->first - first_rank < slots; ++at) {
    RankSnapshot& snapshot = snapshots.emplace_back(
        RankSnapshot{at->first, at->second, stragglers_.Find(at->first, now)});
    snapshot.told.ago = now - last_beats_.at(at->first);
  }
  return snapshots;
}

bool JobProgress::HearRankAlerts(std::vector<RankAlert> alerts, int first_rank, int slots,
                                 TimePoint now) {
  const int most = std::min(slots, static_cast<int>(limits::kRanksToldOfNode.most));
  std::erase_if(alerts, [most](const RankAlert& told) {
    return told.local_rank < 0 || told.local_rank >= most;
  });
  if (alerts.size() > limits::kRankAlertsOfNode.most) {
    alerts.resize(limits::kRankAlertsOfNode.most);
  }
  const auto key = [](const RankAlert& told) {
    return std::tie(told.local_rank, told.kind, told.what);
  };
  std::sort(alerts.begin(), alerts.end(),
            [&](const auto& one, const auto& other) { return key(one) < key(other); });
  std::vector<Alert> heard;
  for (RankAlert& told : alerts) {
    const TimePoint since = now - std::max(told.ago, Duration::zero());
    heard.push_back({std::move(told), since});
  }
  std::vector<Alert>& before = alerts_[first_rank];
  const bool is_new = !std::equal(
      heard.begin(), heard.end(), before.begin(), before.end(),
      [&](const Alert& one, const Alert& other) { return key(one.told) == key(other.told); });
  before = std::move(heard);
  if (before.empty()) alerts_.erase(first_rank);
  return is_new;
}

std::vector<RankAlertSnapshot> JobProgress::DescribeRankAlerts(int first_rank,
                                                               TimePoint now) const {
  const auto of_node = alerts_.find(first_rank);
  if (of_node == alerts_.end()) return {};
  std::vector<RankAlertSnapshot> snapshots;
  for (const Alert& alert : of_node->second) {
    RankAlertSnapshot& snapshot =
        snapshots.emplace_back(RankAlertSnapshot{first_rank + alert.told.local_rank, alert.told});
    snapshot.told.ago = now - alert.since;
  }
  return snapshots;
}

void JobProgress::Clear() {
  ranks_.clear();
  alerts_.clear();
  last_beats_.clear();
  stragglers_.Clear();
  looked_.reset();
}

}  // namespace muster::rendezvous
